import type { ExecutionContext } from 'ava';
import Fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { VirtualHost } from '../../../src/config/elements/vhost.ts';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { VirtualHostConfig } from '../../../src/config/model.ts';
import { readConfig } from '../../../src/config/read.ts';
import type { Application } from '../../../src/core/application.ts';
import type { Playlist } from '../../../src/core/playlist.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { HLS } from '../../../src/publishers/hls/ts/index.ts';
import { LLHLS } from '../../../src/publishers/hls/ll/index.ts';
import type { OnDumped } from '../../../src/publishers/hls/local/own-streams.ts';
import { PlaylistPublisher } from '../../../src/publishers/hls/publisher.ts';
import { LIMITS } from '../../../src/web/limits.ts';
import { aloneWith } from '../cluster/alone.ts';
import { urisOf } from './playlist-uris.ts';

/** As on the ports of a server. */
export const ROUTER = { maxParamLength: LIMITS.pathNameLength };

export interface LlhlsSetup {
  /** What it lets clients in with. */
  readonly access?: Partial<AccessOptions>;
  /** As in the management API. */
  readonly llhls?: object;
  /** The same of HLS with MPEG-TS; absent: it is off. */
  readonly hls?: object;
  readonly vhost?: object;
  /** More virtual hosts with an application `app`, by name. */
  readonly vhosts?: Readonly<Record<string, object>>;
  readonly playlists?: readonly Playlist[];
  readonly onDumped?: OnDumped;
}

/** One virtual host, with one application `app` that has LL-HLS. */
export function llhlsRegistry(setup: LlhlsSetup) {
  const registry = new Registry();
  const vhost = registry.createVhost(vhostConfig('default', ['*'], setup, setup.vhost), true);
  for (const [name, more] of Object.entries(setup.vhosts ?? {}))
    registry.createVhost(vhostConfig(name, [`${name}.example`], setup, more), true);
  return { registry, vhost };
}

function vhostConfig(name: string, names: readonly string[], { llhls = {}, hls }: LlhlsSetup, more: object = {}) {
  const publishers = { llhls, ...(hls !== undefined && { hls }) };
  const applications = [{ name: 'app', type: 'live', publishers }];
  const reading = readConfig(VirtualHost, { name, host: { names }, applications, ...more });
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  return reading.config as VirtualHostConfig;
}

/** One application `app` with LL-HLS, and HLS with MPEG-TS where that is on, behind HTTP that does not listen yet. */
export async function openLlhls(t: Pick<ExecutionContext, 'teardown'>, setup: LlhlsSetup = {}) {
  const { registry, vhost } = llhlsRegistry(setup);
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const options = {
    registry,
    ...(await aloneWith(registry, { log, ...setup.access })),
    log,
    onDumped: setup.onDumped,
    tokenKeys: [Buffer.alloc(32, 7)],
  };
  const publisher = new PlaylistPublisher(LLHLS, options);
  // files are read in real time, whatever the time of the test is
  const app: FastifyInstance = Fastify({ pluginTimeout: 0, routerOptions: ROUTER });
  await app.register(publisher.routes);
  const others = setup.hls === undefined ? [] : [new PlaylistPublisher(HLS, options)];
  for (const other of others) await app.register(other.routes);
  const application = vhost.application('app');
  t.teardown(async () => {
    registry.close('the test is over');
    await Promise.all([publisher, ...others].map((one) => one.close()));
    await app.close();
  });
  return {
    registry,
    quality: options.quality,
    application,
    publisher,
    /** Of LL-HLS, and of HLS with MPEG-TS where that is on. */
    publishers: [publisher, ...others],
    app,
    /** Lines of the log. */
    lines,
    goLive: (tracks: readonly Track[], name = 'stream') => goLive(application, name, tracks, setup.playlists ?? []),
    get: (url: string, headers: Record<string, string> = {}) => app.inject({ method: 'GET', url, headers }),
    /** URLs of the children of a master playlist, in order: sound first. */
    children: async (master = '/app/stream/llhls.m3u8') => {
      const { body } = await app.inject(master);
      return urisOf(body, master);
    },
  };
}

function goLive(
  application: Application,
  name: string,
  tracks: readonly Track[],
  playlists: readonly Playlist[],
): { input: InputStream; output: OutputStream } {
  const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks(tracks);
  const output = application.addOutput(input, name);
  output.setTracks(tracks);
  for (const playlist of playlists) output.addPlaylist(playlist);
  application.announce(output);
  return { input, output };
}
