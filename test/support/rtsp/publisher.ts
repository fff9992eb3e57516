import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import { RtspProvider } from '../../../src/providers/rtsp/index.ts';
import { RtspPublisher } from '../../../src/publishers/rtsp/index.ts';
import { RtspPorts } from '../../../src/rtsp/ports.ts';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { aloneWith } from '../cluster/alone.ts';
import { tracksOf } from '../media/coded-packets.ts';
import { freePair, freePorts } from '../network/ports.ts';
import { addVhost, goLive, type VhostShape } from '../server/live.ts';

export interface PublisherOptions {
  readonly packets: readonly Packet[];
  readonly vhost?: VhostShape;
  readonly access?: Partial<AccessOptions>;
  readonly udp?: boolean;
}

/** A live stream `talk`, and a port to play it from over RTSP. */
export async function startPublisher(
  t: ExecutionContext,
  { packets, vhost, access: admitting, udp }: PublisherOptions,
) {
  const registry = new Registry();
  addVhost(registry, { publishers: { rtsp: { maxConnection: 0 } } as never, ...vhost });
  const [port = 0] = freePorts(1);
  const first = freePair();
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const { cluster, access } = await aloneWith(registry, { log, ...admitting });
  const publisher = new RtspPublisher({ access, log });
  const udpPort = udp === true ? [{ first, last: first + 1 }] : [];
  const services = [publisher, new RtspProvider(access)].map((service) => ({ service, udpPort }));
  const ports = await RtspPorts.listen({
    registry,
    access,
    certificates: new CertificateStore({ folder: '.', log }),
    ip: ['127.0.0.1'],
    log,
    groups: [{ port, tlsPort: undefined, services }],
  });
  t.teardown(async () => {
    registry.close('the test is over');
    await ports.close();
    await publisher.close();
    access.close();
    await cluster.close();
  });
  const output = goLive(registry, 'app', 'talk', tracksOf(packets));
  registry.vhosts.get('default')?.applications.get('app')?.announce(output);
  return { port, udpPort: first, output, registry, publisher, access, lines };
}
