import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import Fastify from 'fastify';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { WebrtcBindConfig } from '../../../src/config/model.ts';
import { Registry } from '../../../src/core/registry.ts';
import { createLogger } from '../../../src/log/log.ts';
import { WebrtcPublisher } from '../../../src/publishers/webrtc/index.ts';
import { WebrtcProvider } from '../../../src/providers/webrtc/index.ts';
import { LiveProducers } from '../../../src/webrtc/live-producers.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { attachOutputs } from '../../../src/transcode/outputs.ts';
import { ResourceNeighbours } from '../../../src/webrtc/signalling/resource-neighbours.ts';
import { Signalling } from '../../../src/webrtc/signalling/signalling.ts';
import { WorkerPool } from '../../../src/webrtc/worker-pool.ts';
import { aloneWith } from '../cluster/alone.ts';
import { createVhost } from '../api/api.ts';

export interface WebrtcServerOptions {
  /** Options of the application's WebRTC publisher. */
  readonly webrtc?: object;
  /** Options of the application's WebRTC provider. */
  readonly ingest?: object;
  readonly vhost?: object;
  /** What it lets clients in with. */
  readonly access?: Partial<AccessOptions>;
  readonly ice?: readonly { readonly address: string; readonly protocol: 'udp' | 'tcp' }[];
  readonly iceServers?: readonly (Omit<WebrtcBindConfig['iceServers'][number], 'lifetime'> & {
    readonly lifetime?: number;
  })[];
  /** More of `IceCandidates`. */
  readonly candidates?: Partial<WebrtcBindConfig['iceCandidates']>;
  /** How many media workers; one per core where it is not told. */
  readonly workers?: number;
}

/** A WebRTC publisher on free ports, with an application `app`. Ends with the test. */
export async function startWebrtc(t: Pick<ExecutionContext, 'teardown'>, options: WebrtcServerOptions = {}) {
  const {
    webrtc = {},
    ingest = {},
    vhost = {},
    ice = [{ address: '127.0.0.1', protocol: 'udp' }],
    iceServers = [],
    candidates = {},
    workers,
  } = options;
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [
      { name: 'app', type: 'live', providers: { webrtc: ingest }, publishers: { webrtc } },
      { name: 'off', type: 'live', publishers: {} },
    ],
    ...vhost,
  });
  const bind: WebrtcBindConfig = {
    signalling: { threadPerSocket: false },
    iceCandidates: {
      iceCandidate: ice.map((candidate) => ({ ...candidate, first: 0, last: 0 })),
      tcpRelay: [],
      tcpRelayForce: false,
      enableLinkLocalAddress: false,
      defaultTransport: 'udptcp',
      ...(workers === undefined ? {} : { iceWorkerCount: workers }),
      ...candidates,
    },
    iceServers: iceServers.map((server) => ({ lifetime: 3_600_000, ...server })),
  };
  const log = createLogger(process.env.KILN_TEST_LOG ?? 'silent');
  const { cluster, calls, access, redirects, quality } = await aloneWith(registry, { log, ...options.access });
  const pool = await WorkerPool.create([bind.iceCandidates], log);
  const producers = new LiveProducers();
  const publisher = new WebrtcPublisher({
    registry,
    access,
    bind,
    pool,
    producers,
    quality,
    log,
  });
  const provider = new WebrtcProvider({ registry, access, pool, producers, bind, log });
  const signalling = new Signalling({
    neighbours: new ResourceNeighbours(cluster, calls),
    access,
    redirects,
    onPeer: () => void pool.ready(),
    log,
  });
  const inventory = new CodecInventory({ log });
  registry.on('input', (input, application) => {
    if (input.source.kind === 'webrtc') attachOutputs(input, application, { log, inventory, folder: '.' });
  });
  const app = Fastify({ forceCloseConnections: true });
  await app.register(signalling.routes({ play: publisher.handler, publish: provider.handler }));
  // a page that really comes from here: Chromium lets no other page reach loopback
  app.get('/page', (_request, reply) => reply.type('text/html').send('<!doctype html><div id=player></div>'));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  t.teardown(async () => {
    registry.close('the test is over');
    provider.close();
    publisher.close();
    signalling.close();
    pool.close();
    await app.close();
  });
  return {
    registry,
    access,
    quality,
    publisher,
    provider,
    pool,
    signalling,
    app,
    port,
    url: `http://127.0.0.1:${port}`,
  };
}
