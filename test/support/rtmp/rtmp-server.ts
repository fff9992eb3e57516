import type { BlockList } from 'node:net';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { CertificateStore } from '../../../src/tls/certificates.ts';
import type { VirtualHostConfig, RtmpProviderConfig } from '../../../src/config/model.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { RtmpServer } from '../../../src/providers/rtmp/server.ts';
import { RtmpPublisher } from '../../../src/publishers/rtmp/index.ts';
import { aloneWith } from '../cluster/alone.ts';

export interface RtmpSetup {
  readonly rtmp?: Partial<RtmpProviderConfig>;
  readonly hostNames?: readonly string[];
  readonly extended?: boolean;
  /** There is another node that takes publishers. */
  readonly hasSuccessor?: boolean;
  /** Clients may play. */
  readonly plays?: boolean;
  /** Clients may publish; by default they may. */
  readonly publishes?: boolean;
  /** Has a TLS port, with these certificates. */
  readonly certificates?: CertificateStore;
  /** Without a port in the clear. */
  readonly onlyTls?: boolean;
  readonly proxyNetworks?: BlockList;
  readonly signedPolicy?: VirtualHostConfig['signedPolicy'];
  readonly admissionWebhooks?: VirtualHostConfig['admissionWebhooks'];
  /** What it lets clients in with. */
  readonly access?: Partial<AccessOptions>;
}

/** An input stream that was announced, with all it brought. */
export interface Recording {
  readonly input: InputStream;
  readonly packets: Packet[];
  /** Each set of tracks that was announced. */
  readonly tracks: (readonly Track[])[];
  closed: string | undefined;
}

/** A registry with one virtual host, `app` taking RTMP and `closed` taking none, and a server on a free port. */
export async function startRtmp(setup: RtmpSetup = {}) {
  const registry = new Registry();
  const rtmp = {
    maxConnection: 0,
    timestampMode: 'Auto',
    packetSilenceTimeoutMs: 0,
    firstMediaWaitTimeoutMs: 0,
    blockDuplicateStreamName: true,
    passthroughOutputProfile: false,
    ...setup.rtmp,
  };
  const config = {
    name: 'default',
    signedPolicy: setup.signedPolicy,
    admissionWebhooks: setup.admissionWebhooks,
    host: { names: setup.hostNames ?? ['*'] },
    applications: [
      {
        name: 'app',
        type: 'live',
        providers: { rtmp },
        outputProfiles: { outputProfile: [] },
        publishers: {
          ...(setup.plays && { rtmp: { maxConnection: 0, clusterMaxConnection: 0, delayBufferTimeMs: 0 } }),
        },
      },
      { name: 'closed', type: 'live', providers: {}, publishers: {} },
    ],
  };
  registry.createVhost(config as unknown as VirtualHostConfig, true);
  const recordings: Recording[] = [];
  registry.on('input', (input) => {
    const recording: Recording = { input, packets: [], tracks: [input.tracks], closed: undefined };
    recordings.push(recording);
    input.on('tracks', (tracks) => recording.tracks.push(tracks));
    input.read({
      packet: (packet) => void recording.packets.push(packet),
      close: (reason) => {
        recording.closed = reason;
      },
    });
  });
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { access } = await aloneWith(registry, { log, ...setup.access });
  const players = setup.plays ? new RtmpPublisher({ registry, access }) : undefined;
  const server = await RtmpServer.listen({
    access,
    log,
    host: '127.0.0.1',
    publishes: setup.publishes ?? true,
    players,
    extended: setup.extended ?? true,
    handOver: { registry, hasSuccessor: () => setup.hasSuccessor ?? false },
    proxyNetworks: setup.proxyNetworks,
    ...(!setup.onlyTls && { port: 0 }),
    ...(setup.certificates && { tls: { port: 0, certificates: setup.certificates } }),
  });
  return {
    registry,
    server,
    port: server.port,
    tlsPort: server.tlsPort,
    recordings,
    log,
    /** Lines of the log. */
    lines,
    async close(): Promise<void> {
      await server.close();
      await players?.close();
      registry.close('the test is over');
    },
  };
}
