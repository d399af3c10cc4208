# SPDX-License-Identifier: LGPL-2.1-or-later
# A guest that CHPC's addon-kvm-sr-iov gave its VFs: which VF each of its NICs is, and what that shows, stands in that driver's lock
# files, its vf_maps and the network's VLAN_ID. The agent is asked for just that, in the live metadata, and compares it with the
# hardware before it takes the VFs over.

require_relative 'vmm/vhca/vhca'

module Vhca
    Lock = Struct.new(:vf, :mac)

    # What one NIC of that driver's shows: the table's index 0 is at the end of whatever it asked for.
    Held = Struct.new(:nic, :vf, :guid, :pkeys) do
        def xml
            %(<vf name="#{nic.name}" fabric="#{vf['fabric']}" partition="#{pkeys.join(' ')}" guid="#{guid}"/>)
        end
    end

    # Adopts the VFs of the VM's running domain.
    class Adoption
        KEY      = 'vhca'
        WITHIN_S = 10
        POLL_S   = 0.2
        ADDRESS  = /\A0x(\h\h) 0x(\h\h) 0x(\h\h)\s*\z/

        def initialize(locks, maps, uri)
            @locks, @maps, @uri = locks, maps, uri
        end

        # The claims that were made; none if nothing was to be done.
        def adopt(vm)
            domain = Vhca.domain(vm) or raise Refused, "the domain of VM #{Vhca.show(vm.id)} does not run here"
            served = domain['vfs'].map {|vf| vf['name'] }
            nics = vm.nics.reject {|nic| served.include?(nic.name) }
            return [] if nics.empty?
            raise Refused, "#{domain['name']} has a request of its own in its metadata" unless domain['requests'].empty?

            request(domain, held(nics))
            Vhca.list('claims').select {|claim| claim['domain'] == domain['uuid'] && !served.include?(claim['name']) }
        end

        private

        # Of the VFs that a guest has without a claim: a lock file may be left over.
        def held(nics)
            vfs = Vhca.list('vfs').select {|vf| vf['state'] == 'unmanaged' }
            ports = Vhca.list('hcas').map {|hca| [hca['bdf'], hca['ports'].map {|port| port['pkeys'] }.find(&:any?)] }.to_h
            nics.map do |nic|
                lock = locks.find {|l| same_address?(l.mac, nic.mac) && vfs.any? {|vf| vf['bdf'] == l.vf } }
                raise Refused, "no lock file in #{@locks} says which VF of a guest has the MAC #{nic.mac}" unless lock

                vf = vfs.find {|v| v['bdf'] == lock.vf }
                Held.new(nic, vf, "0x0000#{lock.mac.delete(':')}", pkeys(nic, ports[vf['pf']] || []))
            end
        end

        # The prefix of the MAC was that driver's own.
        def same_address?(lock, nic)
            lock[6..-1] == nic[6..-1]
        end

        # The first entry with that number, of whatever membership, and behind it the table's first.
        def pkeys(nic, table)
            wanted = nic.partition.split.map(&:hex).first
            key = table.find {|k| (k.hex & ~FULL) == (wanted & ~FULL) }
            raise Refused, "#{nic.name}: 0x#{wanted.to_s(16)} is not in the port's P_Key table" unless key

            [key, table[0]].uniq
        end

        def locks
            @read ||= Dir.glob(File.join(@locks, '*/*')).map do |path|
                mac = File.read(path).strip.downcase
                vf = address(*path.split('/').last(2))
                Lock.new(vf, mac) if vf && mac =~ MAC
            end.compact
        end

        def address(map, number)
            return nil unless number =~ /\A[0-9]{1,3}\z/

            line = File.readlines(File.join(@maps, map))[number.to_i]
            line =~ ADDRESS ? format('0000:%s:%s.%x', $1, $2, $3.hex).downcase : nil
        rescue Errno::ENOENT
            nil
        end

        def request(domain, found)
            metadata(domain, '--set', "<infiniband>#{found.map(&:xml).join}</infiniband>")
            await(domain, found.length)
            raise Refused, "#{domain['name']} is not taken over: see the line above" unless Vhca.ctl('adopt', domain['uuid']).zero?
        rescue Refused
            metadata(domain, '--remove')
            raise
        end

        def metadata(domain, *args)
            done = system('virsh', '-c', @uri, '-q', 'metadata', domain['uuid'], NAMESPACE, '--live', '--key', KEY, *args, :out => :err)
            raise Refused, "virsh does not change the metadata of #{domain['name']}" unless done
        end

        # libvirt tells the agent of the metadata.
        def await(domain, count)
            deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WITHIN_S
            until Vhca.list('domains').find {|d| d['uuid'] == domain['uuid'] }&.fetch('requests')&.length == count
                raise Refused, 'vhcad does not see the new metadata' if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

                sleep POLL_S
            end
        end
    end
end
