# SPDX-License-Identifier: LGPL-2.1-or-later
# What OpenNebula's XML says about our NICs, in vhcad's words. Only what has been checked here leaves this file: no value that a
# tenant or a network's owner wrote reaches a shell, a command line or XML unchecked.

require 'json'
require 'English'
require 'open3'
require 'rexml/document'

module Vhca
    # Ends the action: one line for the VM's log and its error.
    class Refused < StandardError; end

    NAMESPACE  = 'urn:vhcad:domain:1'
    NAME       = /\A[A-Za-z0-9_-]{1,31}\z/
    PKEY       = /\A(0x[0-9a-fA-F]{1,4})(?:=(full|limited))?\z/
    MAC        = /\A\h\h(:\h\h){5}\z/
    UUID       = /\A\h{8}(-\h{4}){3}-\h{12}\z/
    NO_UUID    = '00000000-0000-0000-0000-000000000000' # never deployed: libvirt gives it one
    KEYS_MAX   = 127  # of one VF, vhcad(8)
    TEXT_MAX   = 1023 # of partition="...", the same
    VFS_MAX    = 16   # of one domain
    INPUT_MAX  = 64 << 20 # OpenNebula's databases hold less
    FULL       = 0x8000
    USAGE      = 2 # vhcactl's exit status, also of what it does not know
    NO_SUCH    = 3 # the same
    NO_ANSWER  = 7 # the same
    ENV.delete('VHCACTL_URL') # this host's agent is asked, whatever the environment says
    ENDS       = %w[HUP INT TERM].freeze
    UNHEARD    = [NO_ANSWER, *ENDS.map {|name| 128 + Signal.list[name] }].freeze # away, or ended before it has asked
    REFUSALS   = [USAGE, NO_SUCH, 4, 5, 6, 8].freeze # the same, where the agent has begun nothing

    LIBVIRT       = ENV.fetch('LIBVIRT_URI', 'qemu:///system') # as the stock scripts'
    ANSWER_WAIT_S = Integer(ENV.fetch('VHCA_ANSWER_WAIT', '10'))
    VIRSH_WAIT_S  = Integer(ENV.fetch('VHCA_VIRSH_WAIT', '30'))
    TIMED_OUT     = 124 # timeout(1)'s exit status
    POLL_S        = 0.5
    PROLOG_DTD = /\A(?>\s+|<\?.*?\?>|<!--.*?-->)*<!DOCTYPE/m
    # A tenant may write these into any text, and REXML would refuse the whole VM; no value of ours has them.
    UNREADABLE = /&(?!(?:lt|gt|amp|quot|apos);)|[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/

    Nic = Struct.new(:name, :mac, :partition, :fabric, :guid, :attach) do
        def attributes
            { 'name' => name, 'fabric' => fabric, 'partition' => partition, 'guid' => guid }
        end

        def xml
            %(<vhca:vf #{attributes.map {|key, value| %(#{key}="#{value}") }.join(' ')}/>)
        end
    end

    Vm = Struct.new(:id, :deploy_id, :nics)

    # What a domain's metadata asks for.
    def self.infiniband(nics)
        %(<vhca:infiniband xmlns:vhca="#{NAMESPACE}">#{nics.map(&:xml).join}</vhca:infiniband>)
    end

    def self.show(value)
        text = value.to_s.inspect
        text.length > 60 ? "#{text[0, 60]}..." : text
    end

    # Whatever the locale of the ssh session, and whatever bytes somebody wrote.
    def self.utf8(text)
        text.dup.force_encoding('UTF-8').scrub
    end

    # A P_Key by number, or a partition by its name at the agent.
    def self.key(item, where)
        return item if item =~ /\A[A-Za-z]/ && item =~ NAME

        number, member = PKEY.match(item)&.captures
        value = number&.hex
        if value.nil? || (value & ~FULL).zero?
            raise Refused, "#{where}: IB_PKEYS has #{show(item)}; write 0x8001, 0x0001=full, 0x0001=limited or a partition's name"
        end

        value |= FULL if member == 'full'
        value &= ~FULL if member == 'limited'
        format('0x%04x', value)
    end

    def self.partition(pkeys, vlan, where)
        if !pkeys.empty?
            items = pkeys.split(/[ ,]+/, KEYS_MAX + 2)
            raise Refused, "#{where}: more than #{KEYS_MAX} P_Keys in IB_PKEYS" if items.length > KEYS_MAX

            text = items.map {|item| key(item, where) }.join(' ')
            raise Refused, "#{where}: IB_PKEYS is longer than #{TEXT_MAX} characters" if text.length > TEXT_MAX

            text
        elsif vlan =~ /\A[0-9]{1,5}\z/ && vlan.to_i.between?(1, 0x7fff)
            format('0x%04x', FULL | vlan.to_i)
        elsif vlan.empty?
            raise Refused, "#{where}: no partition: set IB_PKEYS or VLAN_ID in the network"
        else
            raise Refused, "#{where}: VLAN_ID is #{show(vlan)}; 1 to 32767 is a partition"
        end
    end

    def self.guid(policy, mac, where)
        case policy
        when '', 'auto' then 'auto'
        when 'mac' then "mac:#{mac}"
        # As CHPC's addon-kvm-sr-iov gave it to a VM's first VF, for images that read their address from it.
        when 'ip' then "0x0000aa00#{mac.delete(':')[4..-1]}"
        when 'sm' then 'sm'
        else raise Refused, "#{where}: IB_GUID is #{show(policy)}; auto, mac, ip or sm is meant"
        end
    end

    def self.nic(element)
        text = ->(name) { element.elements[name]&.text.to_s }
        id = text['NIC_ID']
        raise Refused, "a NIC has the NIC_ID #{show(id)}" unless id =~ /\A[0-9]{1,4}\z/

        where = "NIC #{id}"
        mac = text['MAC'].downcase
        fabric = text['PHYDEV'].empty? ? 'default' : text['PHYDEV']
        raise Refused, "#{where}: MAC is #{show(mac)}" unless mac =~ MAC
        raise Refused, "#{where}: PHYDEV is #{show(fabric)}; a fabric's name has letters, digits, _ and -" unless fabric =~ NAME

        Nic.new("ib#{id.to_i}", mac, partition(text['IB_PKEYS'], text['VLAN_ID'], where), fabric,
                guid(text['IB_GUID'], mac, where), text['ATTACH'] == 'YES')
    end

    # The VM of a driver message, of vm.xml, or of what a VNM script gets.
    def self.vm(xml)
        raise Refused, "the VM is larger than #{INPUT_MAX} bytes" if xml.bytesize > INPUT_MAX
        xml = utf8(xml)
        raise Refused, 'the VM has a document type' if xml =~ PROLOG_DTD

        root = REXML::Document.new(xml.gsub(UNREADABLE, "\uFFFD")).root
        root = root.elements['VM'] if root && root.name == 'VMM_DRIVER_ACTION_DATA'
        raise Refused, 'there is no VM on stdin' unless root && root.name == 'VM'

        ours = root.get_elements('TEMPLATE/NIC').select {|e| e.elements['VN_MAD']&.text == 'vhca' }
        raise Refused, "#{ours.length} NICs are for vhca; at most #{VFS_MAX}" if ours.length > VFS_MAX

        Vm.new(root.elements['ID']&.text.to_s, root.elements['DEPLOY_ID']&.text.to_s, ours.map {|e| nic(e) })
    rescue REXML::ParseException, RuntimeError
        raise Refused, 'the VM is not XML'
    end

    # Exit status; what vhcactl says goes to the VM's log.
    def self.ctl(*args)
        system('vhcactl', *args, :out => :err)
        status = $CHILD_STATUS or return 127
        status.exitstatus || (128 + status.termsig)
    end

    def self.now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # Asks again where an agent is being started, until the block has what it wants.
    def self.patiently(deadline)
        sleep POLL_S until (found = yield) || now > deadline
        found
    end

    # What vhcactl says, where there is an agent at last: answer, error, exit status.
    def self.query(*args, deadline: now + ANSWER_WAIT_S, **input)
        out = err = status = nil
        patiently(deadline) do
            out, err, status = Open3.capture3('vhcactl', '--json', *args, **input)
            status.exitstatus != NO_ANSWER
        end
        [utf8(out), utf8(err), status]
    end

    def self.refuse(err)
        raise Refused, err.lines.first.to_s.strip
    end
    private_class_method :query, :refuse

    # The agent's answer.
    def self.ask(*args, **more)
        out, err, status = query(*args, **more)
        refuse(err) unless status.success?

        JSON.parse(out)
    rescue JSON::ParserError
        raise Refused, "vhcactl #{args[0]}: the answer is not JSON"
    end

    # What the agent would refuse to the VM, it refuses here. False: it, or vhcactl, is older than this question.
    def self.plan(vm)
        uuid = vm.deploy_id =~ UUID ? vm.deploy_id : NO_UUID
        xml = "<domain><name>one-#{vm.id.to_i}</name><uuid>#{uuid}</uuid><metadata>#{infiniband(vm.nics)}</metadata></domain>"
        out, err, status = query('plan', '--xml', '-', :stdin_data => xml)
        # With --json the agent's own refusals are in the answer, too.
        return false if status.exitstatus == NO_SUCH || (status.exitstatus == USAGE && out.empty?)

        status.success? || refuse(err)
    end

    def self.list(what, *args)
        ask(what, *args).fetch(what)
    end

    # An agent that is just being started is waited for: while it only has been asked this, nothing has begun.
    def self.await_agent
        deadline = now + ANSWER_WAIT_S
        synced = patiently(deadline) { ask('node', :deadline => deadline)['libvirt']['synced'] }
        raise Refused, 'vhcad has no connection to libvirt, see vhcactl node' unless synced
    end

    # The running domain of a VM, or nil: never because the agent has lost libvirt.
    def self.domain(vm, deploy_id = vm.deploy_id)
        await_agent
        names = [deploy_id, "one-#{vm.id}"]
        list('domains').find {|d| names.include?(d['uuid']) || names.include?(d['name']) }
    end

    def self.attach(domain, nic)
        ctl('attach', domain, nic.name, '--partition', nic.partition, '--guid', nic.guid, '--fabric', nic.fabric)
    end

    # After a status of attach that is no refusal: the agent may have begun, and OpenNebula knows of no such NIC.
    def self.undo_attach(domain, nic)
        30.times do
            return unless UNHEARD.include?(ctl('--timeout', '60', 'detach', domain, nic.name))

            sleep 1
        end
    end

    # A VF that was attached is asked for, too, so that a save has it. Where that fails, post attaches it behind the restore.
    def self.request(vm, deploy_id, nic)
        domain = self.domain(vm, deploy_id)
        return if domain.nil? || domain['problem']

        change_requests(domain) {|root| root.add_element('vf', nic.attributes) if requests(root, nic.name).empty? }
    rescue Refused, SystemCallError => e
        warn "vhca: #{e.message}"
    end

    # Takes a VF out of what the running domain asks for: else it came back with the next migration or save.
    def self.withdraw(vm, deploy_id, name)
        domain = self.domain(vm, deploy_id) or return
        change_requests(domain) {|root| requests(root, name).each {|vf| root.delete(vf) } }
    end

    def self.requests(root, name)
        root.get_elements('vf').select {|vf| vf.attributes['name'] == name }
    end
    private_class_method :requests

    # By what libvirt has: the agent learns of a change a little later, and this may come right behind one.
    def self.change_requests(domain)
        there = live_metadata(domain)
        root = there ? REXML::Document.new(there).root : REXML::Element.new('infiniband')
        raise Refused, "the metadata of #{domain['name']} is no XML" unless root

        before = root.to_s
        yield root
        return if root.to_s == before

        live_metadata(domain, *(root.elements.empty? && root.attributes.empty? ? ['--remove'] : ['--set', root.to_s]))
    rescue REXML::ParseException
        raise Refused, "the metadata of #{domain['name']} is no XML"
    end
    private_class_method :change_requests

    # Our element of the running domain, nil if it has none; or what changes it. A libvirt that hangs holds no action up.
    def self.live_metadata(domain, *change, uri: LIBVIRT)
        out, err, status = Open3.capture3({ 'LC_ALL' => 'C' }, 'timeout', VIRSH_WAIT_S.to_s, 'virsh', '-c', uri, '-q', 'metadata',
                                          domain['uuid'], NAMESPACE, '--live', '--key', 'vhca', *change)
        return out if status.success?
        return if change.empty? && err.include?('metadata not found')

        $stderr.print(err)
        within = " within #{VIRSH_WAIT_S} s" if status.exitstatus == TIMED_OUT
        raise Refused, "virsh does not give or change the metadata of #{domain['name']}#{within}"
    end

    def self.main
        yield
    rescue Refused, SystemCallError => e
        warn "vhca: #{e.message}"
        exit 1
    end
end
