# SPDX-License-Identifier: LGPL-2.1-or-later
# The deployment file: our element in, the <interface> of our NICs out, and each other byte as oned wrote it.

require_relative 'vhca'

module Vhca
    # What is no tag is skipped as a whole: a '<' in it means nothing.
    MARKUP = /<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(?:[^<>"']|"[^"]*"|'[^']*')*>/m

    Tag = Struct.new(:path, :text, :first, :last, :kind)

    # Every tag, with the path of element names that leads to it, and the bytes that it takes.
    def self.tags(xml)
        found, path = [], []
        at = 0
        while (m = MARKUP.match(xml, at))
            at = m.end(0)
            next if m[0].start_with?('<!--', '<![CDATA[', '<?')
            raise Refused, 'the deployment file has a document type' if m[0].start_with?('<!')

            if m[0].start_with?('</')
                found << Tag.new(path.join('/'), m[0], m.begin(0), at, :close)
                path.pop
            else
                path.push(m[0][%r{\A<([^\s/>]+)}, 1].to_s)
                found << Tag.new(path.join('/'), m[0], m.begin(0), at, :open)
                path.pop if m[0].end_with?('/>')
            end
        end
        found
    end

    def self.spans(tags, macs)
        first = mac = nil
        found = tags.map do |tag|
            first, mac = tag.first, nil if tag.path == 'domain/devices/interface' && tag.kind == :open
            mac = tag.text[/\saddress\s*=\s*["']([^"']*)/, 1] if tag.path == 'domain/devices/interface/mac'
            [first, tag.last, ''] if tag.path == 'domain/devices/interface' && tag.kind == :close && macs.include?(mac&.downcase)
        end
        found.compact
    end

    def self.metadata(tags, request)
        at = tags.find {|tag| tag.path == 'domain/metadata' && tag.kind == :open }
        if at.nil?
            close = tags.find {|tag| tag.path == 'domain' && tag.kind == :close }
            raise Refused, 'the deployment file has no <domain>' unless close

            [close.first, close.first, "<metadata>#{request}</metadata>"]
        elsif at.text.end_with?('/>')
            [at.first, at.last, "<metadata>#{request}</metadata>"]
        else
            [at.last, at.last, request]
        end
    end

    def self.deployment(xml, nics)
        return xml if nics.empty?

        tags = tags(xml)
        if tags.any? {|tag| tag.text.include?(NAMESPACE) }
            raise Refused, 'the deployment file asks vhcad for VFs already: take that out of RAW, or the NICs out of the template'
        end

        changes = spans(tags, nics.map(&:mac)) << metadata(tags, infiniband(nics))
        changes.sort_by(&:first).reverse_each {|first, last, text| xml[first...last] = text }
        xml
    end
end
