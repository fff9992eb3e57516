import test, { type ExecutionContext } from 'ava';
import { MessageType } from '../../src/protocols/rtmp/message.ts';
import { Matrix } from '../support/matrix/matrix.ts';
import type { PublisherName } from '../support/matrix/publishers.ts';
import { playOvt } from '../support/ovt/ovt.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

let matrix: Matrix;
test.before(async () => {
  // three segments of silence end a session of HLS
  matrix = await Matrix.open(1, 5);
});
test.after.always(() => matrix?.close());

const APP = 'vhosts/default/apps/app';
/** One of each kind, as statistics name it. The last goes on to send when its stream is deleted, and would be back if it paused. */
const SOURCES: Readonly<Record<string, PublisherName>> = {
  rtmp: 'RTMP (Enhanced)',
  srt: 'SRT (ffmpeg)',
  webrtc: 'WHIP (libdatachannel)',
  rtsppull: 'RTSP pull (GStreamer)',
  ovt: 'OVT pull (Kiln)',
  mpegts: 'MPEG-TS over UDP (ffmpeg)',
};

type Counts = Readonly<Record<string, number>>;
interface V2 {
  readonly providers: { readonly totalBytesIn: number; readonly connections: Counts };
  readonly publishers: {
    readonly totalBytesOut: number;
    readonly connections: Counts;
    readonly totalConnections: number;
  };
}
interface V1 {
  readonly totalBytesIn: number;
  readonly totalBytesOut: number;
  readonly connections: Counts;
}

const get = async <T>(path: string): Promise<T> => (await matrix.kiln.api<T>(path)).body.response;
const v1 = (under: string) => get<V1>(`/v1/stats/current/${under}`);
const v2 = (under: string) => get<V2>(`/v2/stats/current/${under}`);

/** Those above zero. */
function counted(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

test.serial('sources of every kind are counted where they are, and not any more when they have gone', async (t) => {
  const streams: Record<string, string> = {};
  await Promise.all(
    Object.entries(SOURCES).map(async ([kind, publisher]) => {
      streams[kind] = await matrix.publish(t, { publisher, codecs: 'H264+OPUS' });
    }),
  );
  const all = Object.fromEntries(Object.keys(SOURCES).map((kind) => [kind, 1]));
  t.deepEqual(counted((await v2(APP)).providers.connections), all);
  t.deepEqual(counted((await v2('vhosts/default')).providers.connections), all);
  for (const [kind, stream] of Object.entries(streams)) {
    const of = `${APP}/streams/${stream}`;
    t.deepEqual(counted((await v2(of)).providers.connections), { [kind]: 1 }, kind);
    await until(
      `bytes of ${kind}`,
      async () => (await v2(of)).providers.totalBytesIn > 10_000 && (await v1(of)).totalBytesIn > 10_000,
    );
    t.is((await matrix.kiln.api(`/v1/${of}`, 'DELETE')).status, 200, kind);
    await until(`${kind} has gone`, async () => counted((await v2(APP)).providers.connections)[kind] === undefined);
  }
  t.deepEqual(counted((await v2(APP)).providers.connections), {});
});

interface Guest {
  /** Resolves when it is thrown out. */
  readonly out: () => Promise<unknown>;
}

/** A player of each kind of session; `session` is its name. */
const PLAYERS: Readonly<Record<string, (t: ExecutionContext, stream: string, session: string) => Promise<Guest>>> = {
  webrtc: async (t, stream, session) => {
    const viewer = new ViewerPeer();
    t.teardown(() => viewer.close());
    await viewer.play(matrix.kiln.httpUrl(`/app/${stream}?direction=whep&session=${session}`));
    await viewer.until(() => viewer.frames().length > 5);
    return { out: () => viewer.until(() => ['closed', 'disconnected', 'failed'].includes(viewer.state)) };
  },
  llhls: (t, stream, session) => playlists(t, `/app/${stream}/opus.m3u8?session=${session}`),
  hlsv3: (t, stream, session) => playlists(t, `/app/${stream}/ts:aac.m3u8?session=${session}`),
  srt: async (t, stream, session) => {
    const viewer = await new SrtCaller(t).call(matrix.kiln.ports.srtPlay as number, {
      streamId: `default/app/${stream}?session=${session}`,
    });
    t.is(viewer.refused, 0);
    await until('media over SRT', async () => (await viewer.receive()) > 0);
    return { out: () => until('SRT ends', async () => !(await viewer.connected())) };
  },
  rtmp: async (t, stream, session) => {
    const viewer = await RtmpClient.connect({ port: matrix.kiln.ports.rtmp, properties: {} });
    t.teardown(() => viewer.close());
    await viewer.play(`${stream}/aac?session=${session}`);
    await viewer.until('media over RTMP', () => viewer.of(MessageType.Video).length > 5);
    return { out: () => viewer.ended() };
  },
  ovt: async (t, stream, session) => {
    const { client, recorder } = await playOvt(`${matrix.kiln.ovtUrl(stream)}?session=${session}`);
    t.teardown(() => client.close());
    await until('media over OVT', () => recorder.packets.length > 0);
    return { out: () => until('OVT ends', () => recorder.ended) };
  },
};

const ASKS_MS = 500;

/** Asks for a playlist again and again, as players do: who is silent is gone. */
async function playlists(t: ExecutionContext, path: string): Promise<Guest> {
  const master = await until(path, async () => {
    const answer = await fetch(matrix.kiln.httpUrl(path));
    return answer.status === 200 && answer.text();
  });
  const list = urisOf(master, matrix.kiln.httpUrl(path)).at(-1) ?? '';
  let { status } = await fetch(list);
  if (status !== 200) throw new Error(`${status} for ${list}`);
  let asking = Promise.resolve();
  const ask = async (): Promise<void> => {
    ({ status } = await fetch(list));
  };
  const timer = setInterval(() => (asking = asking.then(ask)), ASKS_MS);
  t.teardown(() => {
    clearInterval(timer);
    return asking;
  });
  return { out: () => until('its playlist is refused', () => status === 401) };
}

test.serial(
  'players of every kind are listed by the names that they gave themselves, counted, and thrown out one by one',
  async (t) => {
    const stream = await matrix.publish(t, { publisher: 'RTMP (ffmpeg)', codecs: 'H264+AAC' });
    const of = `${APP}/streams/${stream}`;
    const names = Object.keys(PLAYERS).map((kind) => `my-${kind}`);
    const guests = new Map(
      await Promise.all(
        Object.entries(PLAYERS).map(async ([kind, play]) => [kind, await play(t, stream, `my-${kind}`)] as const),
      ),
    );
    t.deepEqual((await get<string[]>(`/v1/${of}/sessions`)).toSorted(), names.toSorted());
    const one = Object.fromEntries(Object.keys(PLAYERS).map((kind) => [kind, 1]));
    for (const under of [of, APP, 'vhosts/default']) {
      t.deepEqual(counted((await v1(under)).connections), one, under);
      t.deepEqual(counted((await v2(under)).publishers.connections), one, under);
    }
    t.is((await v2(of)).publishers.totalConnections, names.length);
    for (const [kind, { out }] of guests) {
      const session = `${of}/sessions/my-${kind}`;
      await until(`bytes to ${kind}`, async () => (await get<V1>(`/v1/stats/current/${session}`)).totalBytesOut > 0);
      t.is((await matrix.kiln.api(`/v1/${session}`, 'DELETE')).status, 200, kind);
      await out();
      await until(`${kind} is not counted`, async () => counted((await v1(of)).connections)[kind] === undefined);
      t.false((await get<string[]>(`/v1/${of}/sessions`)).includes(`my-${kind}`), kind);
    }
    t.deepEqual(await get<string[]>(`/v1/${of}/sessions`), []);
    t.true((await v1(of)).totalBytesOut > 10_000);
  },
);
