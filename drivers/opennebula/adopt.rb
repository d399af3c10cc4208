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
            %(<vf #{asked.map {|key, value| %(#{key}="#{value}") }.join(' ')}/>)
        end

        # As the agent shows it.
        def asked
            { 'name' => nic.name, 'fabric' => vf['fabric'], 'partition' => pkeys.join(' '), 'guid' => guid }
        end
    end

    # Adopts the VFs of the VM's running domain.
    class Adoption
        WITHIN_S = 10
        POLL_S   = 0.2
        LOCK_MAX = 64 # bytes; a MAC and a newline
        ADDRESS  = /\A0x(\h\h) 0x(\h\h) 0x(\h\h)\s*\z/

        def initialize(locks, maps, uri)
            @locks, @maps, @uri = locks, maps, uri
        end

        # The claims that were made; none if nothing was to be done. One at a time: who is refused takes the metadata back.
        def adopt(vm)
            File.open(__FILE__) do |file|
                file.flock(File::LOCK_EX)
                adopt_alone(vm)
            end
        end

        private

        def adopt_alone(vm)
            domain = Vhca.domain(vm) or raise Refused, "the domain of VM #{Vhca.show(vm.id)} does not run here"
            served = domain['vfs'].map {|vf| vf['name'] }
            nics = vm.nics.reject {|nic| served.include?(nic.name) }
            return [] if nics.empty?
            found = held(nics)
            check_requests(domain, found)
            request(domain, found)
            Vhca.list('claims').select {|claim| claim['domain'] == domain['uuid'] && !served.include?(claim['name']) }
        end

        # Of one that was killed on its way the metadata may be left: it is the same again.
        def check_requests(domain, found)
            there = domain['requests'].map {|request| request.slice(*found[0].asked.keys) }
            return if there.empty? || there.sort_by {|r| r['name'] } == found.map(&:asked).sort_by {|r| r['name'] }

            raise Refused, "#{domain['name']} has a request of its own in its metadata"
        end

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
            first = nic.partition.split.first
            raise Refused, "#{nic.name}: #{first} is a partition's name; that driver knew numbers only" unless first =~ PKEY

            wanted = first.hex
            key = table.find {|k| (k.hex & ~FULL) == (wanted & ~FULL) }
            raise Refused, "#{nic.name}: 0x#{wanted.to_s(16)} is not in the port's P_Key table" unless key

            [key, table[0]].uniq
        end

        # Whatever somebody has put there: they are no files of ours.
        def locks
            @read ||= Dir.glob(File.join(@locks, '*/*')).select {|path| File.file?(path) }.map do |path|
                mac = Vhca.utf8(File.binread(path, LOCK_MAX).to_s).strip.downcase
                vf = address(*path.split('/').last(2))
                Lock.new(vf, mac) if vf && mac =~ MAC
            end.compact
        end

        def address(map, number)
            path = File.join(@maps, map)
            return nil unless number =~ /\A[0-9]{1,3}\z/ && File.file?(path)

            line = File.foreach(path, encoding: 'BINARY').first(number.to_i + 1)[number.to_i]
            line =~ ADDRESS ? format('0000:%s:%s.%x', $1, $2, $3.hex).downcase : nil
        end

        # What may have begun keeps its metadata: a guest without would lose its VFs in its next save or migration.
        def request(domain, found)
            Vhca.live_metadata(domain, '--set', "<infiniband>#{found.map(&:xml).join}</infiniband>", :uri => @uri)
            status = seen?(domain, found) ? Vhca.ctl('adopt', domain['uuid']) : nil
            return if status&.zero?

            unless status.nil? || REFUSALS.include?(status)
                raise Refused, "#{domain['name']}: vhcad has not said what came of it; do this again"
            end

            Vhca.live_metadata(domain, '--remove', :uri => @uri)
            raise Refused, status ? "#{domain['name']} is not taken over: see the line above" : 'vhcad does not see the new metadata'
        end

        # libvirt tells the agent of the metadata.
        def seen?(domain, found)
            deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WITHIN_S
            until Vhca.list('domains').find {|d| d['uuid'] == domain['uuid'] }&.fetch('requests')&.length == found.length
                return false if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

                sleep POLL_S
            end
            true
        end
    end
end
