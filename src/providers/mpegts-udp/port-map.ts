import { isSamePort, parseUdpPorts } from '../../config/udp-ports.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';

const PORT = '${Port}';

/** UDP port, of a multicast group or of the server. */
export interface UdpPort {
  readonly port: number;
  readonly group?: string;
}

export interface MappedStream {
  readonly application: Application;
  readonly name: string;
}

/**
 * Streams that a port is mapped to by StreamMaps, in order of their applications' creation; the first is used. Looked up
 * when a stream starts, since the management API creates and changes applications.
 */
export function mappedStreams(registry: Registry, { port, group }: UdpPort): MappedStream[] {
  const wanted = { first: port, last: port, ...(group !== undefined && { group }) };
  const found: MappedStream[] = [];
  for (const vhost of registry.vhosts.values()) {
    for (const application of vhost.applications.values()) {
      const config = application.config.providers.mpegts;
      const item = config?.streams.find(({ port: text }) =>
        parseUdpPorts(text)?.some((ports) => isSamePort(ports, wanted)),
      );
      if (item !== undefined) found.push({ application, name: item.name.replaceAll(PORT, `${port}`) });
    }
  }
  return found;
}
