import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import Fastify from 'fastify';
import type { WebrtcBindConfig } from '../../src/config/model.ts';
import { Registry } from '../../src/core/registry.ts';
import { createLogger } from '../../src/log.ts';
import { WebrtcPublisher } from '../../src/publishers/webrtc/index.ts';
import { WhepNeighbours } from '../../src/publishers/webrtc/whep-neighbours.ts';
import { aloneWith } from './alone.ts';
import { createVhost } from './api.ts';

export interface WebrtcServerOptions {
  /** Options of the application's WebRTC publisher. */
  readonly webrtc?: object;
  readonly vhost?: object;
  readonly ice?: readonly { readonly address: string; readonly protocol: 'udp' | 'tcp' }[];
  readonly iceServers?: WebrtcBindConfig['iceServers'];
  /** How many media workers; one per core where it is not told. */
  readonly workers?: number;
}

/** A WebRTC publisher on free ports, with an application `app`. Ends with the test. */
export async function startWebrtc(t: Pick<ExecutionContext, 'teardown'>, options: WebrtcServerOptions = {}) {
  const { webrtc = {}, vhost = {}, ice = [{ address: '127.0.0.1', protocol: 'udp' }], iceServers = [], workers } = options;
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [{ name: 'app', type: 'live', publishers: { webrtc } }, { name: 'off', type: 'live', publishers: {} }],
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
    },
    iceServers,
  };
  const { cluster, calls, sessionNames } = await aloneWith(registry);
  const publisher = await WebrtcPublisher.create({
    registry, bind, find: async () => undefined, neighbours: new WhepNeighbours(cluster, calls), sessionNames,
    log: createLogger(process.env.KILN_TEST_LOG ?? 'silent'),
  });
  const app = Fastify({ forceCloseConnections: true });
  await app.register(publisher.routes);
  // a page that really comes from here: Chromium lets no other page reach loopback
  app.get('/page', (_request, reply) => reply.type('text/html').send('<!doctype html><div id=player></div>'));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  t.teardown(async () => {
    registry.close('the test is over');
    await publisher.close();
    await app.close();
  });
  return { registry, publisher, app, port, url: `http://127.0.0.1:${port}` };
}
