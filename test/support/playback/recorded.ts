import type { ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { PlaybackPublisher, type PlaybackPublisherOptions } from '../../../src/playback/index.ts';
import { LIMITS } from '../../../src/web/limits.ts';
import { pagesRoutes } from '../../../src/web/pages.ts';
import { createVhost } from '../api/api.ts';
import { aloneWith } from '../cluster/alone.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../media/packets.ts';
import { recordedBytes } from '../recording/recorded-mp4.ts';
import { openFinished, openRecordings } from '../recording/finished.ts';
import { recordedTs } from '../recording/recorded-ts.ts';
import { NO_STORED } from './stored.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
export const NOON = Date.UTC(2026, 2, 5, 12);

interface Setup {
  /** Of the virtual host, as in the management API. */
  readonly vhost?: object;
  readonly playback?: object;
  readonly llhls?: object;
  readonly crossDomains?: PlaybackPublisherOptions['crossDomains'];
  readonly admitting?: Partial<AccessOptions>;
  readonly stored?: PlaybackPublisherOptions['stored'];
}

/** An application `app` whose recordings are played, and `off`, where they are not, behind HTTP that pages share. */
export async function openPlayback(t: ExecutionContext, setup: Setup = {}) {
  const { vhost, playback = {}, llhls = {}, crossDomains, admitting, stored = NO_STORED } = setup;
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['localhost', 'live.example'] },
    applications: [
      { name: 'app', type: 'live', publishers: { playback, llhls } },
      { name: 'off', type: 'live', publishers: { llhls } },
    ],
    ...vhost,
  });
  const { access, calls, live, cluster } = await aloneWith(registry, admitting);
  const node = openFinished(t);
  const recordings = openRecordings(node.folder);
  const publisher = new PlaybackPublisher({
    registry,
    cluster,
    access,
    recordings,
    stored,
    others: undefined,
    calls,
    playlists: [],
    tokenKeys: [Buffer.alloc(32)],
    crossDomains,
    log: pino({ level: 'silent' }),
  });
  const app = Fastify({ pluginTimeout: 0, routerOptions: { maxParamLength: LIMITS.pathNameLength } });
  for (const routes of [publisher.routes, pagesRoutes({ registry, live, serves: ['llhls'] })])
    await app.register(routes);
  t.teardown(async () => {
    registry.close('the test is over');
    await app.close();
    await publisher.close();
    access.close();
    await cluster.close();
  });
  /** Records a file of a second. @param second after noon */
  const record = (second: number, more: Parameters<typeof node.finish>[1] = {}, content?: Buffer) => {
    const names = { vhost: 'default', app: 'app', stream: 'stream', pathBelow: `${second}-${more.id ?? ''}.mp4` };
    return node.finish(NOON + second * 1000, { ...names, ...more }, content);
  };
  /** Records video of 30 frames and a key frame a second, with audio. @param second after noon */
  const recordMp4 = (
    second: number,
    seconds: number,
    more: Parameters<typeof node.finish>[1] = {},
    bytes = 100,
    video = VIDEO,
  ) => {
    const [from, to] = [second, second + seconds];
    const packets = interleaved(videoPackets(video, { from, to, gop: 30, bytes }), audioPackets(AUDIO, { from, to }));
    const [recordTime, finishTime] = [seconds * 1000, NOON + to * 1000];
    return record(second, { recordTime, finishTime, ...more }, recordedBytes([video, AUDIO], packets));
  };
  /** Records packets as MPEG-TS. @param second after noon */
  const recordTs = (second: number, tracks: readonly MediaTrack[], packets: readonly Packet[], seconds: number) => {
    const [recordTime, finishTime] = [seconds * 1000, NOON + (second + seconds) * 1000];
    const more = { recordTime, finishTime, pathBelow: `${second}.ts` };
    return record(second, more, recordedTs(tracks, packets));
  };
  const get = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' | 'OPTIONS' = 'GET') =>
    app.inject({ method, url, headers });
  return { ...node, registry, recordings, publisher, app, record, recordMp4, recordTs, get };
}
