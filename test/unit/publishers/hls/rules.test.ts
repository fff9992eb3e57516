import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Playlist } from '../../../../src/core/playlist.ts';
import type { AudioTrack, Track, VideoTrack } from '../../../../src/core/track.ts';
import { seeded } from '../../codecs/vectors.ts';
import { openLlhlsNode } from '../../../support/hls/llhls-nodes.ts';
import { PlaylistHistory } from '../../../support/hls/playlist-history.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  dataTrack,
  eventPacket,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../support/media/packets.ts';
import { mediaTime } from '../../../support/media/segmenter.ts';
import { spliceInsert } from '../../../support/media/splice.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';
import type { Rule } from '../../../support/playlist-rules/rules.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const SCTE35 = dataTrack({ codec: 'SCTE35' });
const CUE = dataTrack({ id: 1025, codec: 'CUE' });
const TRACKS = [VIDEO, AUDIO, SCTE35, CUE];
const SMALL = videoTrack({ id: 2, name: 'small', bypass: false, width: 320, height: 180, bitrate: 300_000 });
const GERMAN = audioTrack({ id: 3, name: AUDIO.name, language: 'de' });
const LADDER: Playlist = {
  name: 'ladder',
  fileName: 'ladder',
  renditions: [
    { name: 'high', videoVariantName: VIDEO.name, audioVariantName: AUDIO.name },
    { name: 'low', videoVariantName: 'small', audioVariantName: AUDIO.name },
  ],
  options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: 0, enableTsPackaging: true },
};
/** Seconds by which an encoder is late. */
const LATE = 0.3;
const LLHLS = { segmentDuration: 2, segmentCount: 8, chunkDuration: 0.5 };
const HLS = { segmentDuration: 2, segmentCount: 4 };
const MASTERS = ['/app/stream/llhls.m3u8', '/app/stream/ts:playlist.m3u8'];
/** How far a stream goes on between two looks, in seconds: a little less than a part. */
const STEP = 0.4;
const FIRST_LOOK = 3;

/** A node, whose stream's playlists of LL-HLS and HLS with MPEG-TS are looked at after each step. */
async function open(t: ExecutionContext, more: object = {}, playlist?: Playlist) {
  virtualTime(t);
  const playlists = playlist === undefined ? [] : [playlist];
  const setup = { llhls: { ...LLHLS, ...more }, hls: { ...HLS, ...more }, playlists };
  const node = await openLlhlsNode(t, MemoryCluster.create(t, 1), 'a', setup);
  const get = async (url: string) => {
    const { statusCode, body } = await node.get(url);
    return statusCode === 200 ? body : undefined;
  };
  const masters = playlist === undefined ? MASTERS : ['/app/stream/ladder.m3u8', '/app/stream/ts:ladder.m3u8'];
  const histories = masters.map((master) => new PlaylistHistory(get, master));
  const look = async () => {
    for (const history of histories) await history.look();
  };
  const publish = async (all: readonly Track[] = TRACKS) => {
    const { input, output } = await node.goLive(all);
    const begun = Date.now();
    const write = (packet: Packet) => {
      const track = output.tracks.find(({ id }) => id === packet.track.id);
      if (track === undefined) return;
      input.arrival.note(packet, begun + mediaTime(packet) * 1000);
      output.write({ ...packet, track });
    };
    let at = 0;
    /** Brings the stream on to a media time, in seconds. */
    const advance = async (to: number, { events = [], gop = 60, tracks = [VIDEO, AUDIO] }: Media = {}) => {
      for (; at < to; at += STEP) {
        const until = Math.min(at + STEP, to);
        const media = tracks.map((track) => {
          const late = track.bypass ? 0 : LATE;
          const span = { from: Math.max(0, at - late), to: Math.max(0, until - late), gop };
          return track.type === 'video' ? videoPackets(track, span).map(withNal) : audioPackets(track, span);
        });
        interleaved(...media).forEach(write);
        await delay(STEP * 1000);
        // before that, requests wait for the first segment
        if (at > FIRST_LOOK) await look();
      }
      at = to;
      events.forEach(write);
    };
    return { input, output, advance };
  };
  const conclude = () => {
    for (const publisher of node.publishers) publisher.live(node.application, 'stream')?.stream.conclude(true);
  };
  const broken = (...except: Rule[]) => {
    t.true(histories.every(({ size }) => size > 5));
    return histories.flatMap((history) => history.broken(except));
  };
  return { publish, look, conclude, broken };
}

interface Media {
  /** Of the time that is come to. */
  readonly events?: readonly Packet[];
  /** Frames from one key frame to the next. */
  readonly gop?: number;
  readonly tracks?: readonly (VideoTrack | AudioTrack)[];
}

test('playlists of a steady stream break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t);
  const { advance } = await publish();
  await advance(40);
  t.deepEqual(broken(), []);
});

const cue = (seconds: number, told: object) =>
  eventPacket(CUE, Math.round(seconds * CUE.timebase.den), Buffer.from(JSON.stringify(told)));
const splice = (seconds: number, section: Buffer) =>
  eventPacket(SCTE35, Math.round(seconds * SCTE35.timebase.den), section);

test('playlists with splices and cues break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t);
  const { advance } = await publish();
  await advance(6, { events: [splice(6, spliceInsert({ eventId: 1, out: true, duration: 8 }))] });
  await advance(12, { events: [splice(12, spliceInsert({ eventId: 1, out: false }))] });
  await advance(16, { events: [cue(16, { cueType: 'out', duration: 3990 })] });
  await advance(26, { events: [splice(26, spliceInsert({ eventId: 2, out: true, duration: 5, autoReturn: true }))] });
  await advance(34, { events: [cue(34, { cueType: 'out', duration: 60_000 })] });
  await advance(38, { events: [cue(38, { cueType: 'in' })] });
  await advance(64);
  t.deepEqual(broken(), []);
});

test('playlists of a stream that is concluded break no rule of HLS, but leave low latency', async (t) => {
  const { publish, broken, look, conclude } = await open(t);
  const { advance } = await publish();
  await advance(21);
  conclude();
  await look();
  await advance(25);
  t.deepEqual(broken('header-changed-at-end'), []);
});

test('playlists with another configuration of the picture break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t);
  const { advance, output } = await publish();
  await advance(10);
  output.setTracks([videoTrack({ config: AVC_HIGH, width: 1280, height: 720 }), AUDIO, SCTE35, CUE]);
  await advance(40);
  t.deepEqual(broken(), []);
});

test('playlists of a publisher that comes back break no rule of HLS', async (t) => {
  const { publish, broken, look } = await open(t);
  const first = await publish();
  await first.advance(15);
  first.input.close('the connection was lost');
  await look();
  const second = await publish();
  await second.advance(40);
  t.deepEqual(broken(), []);
});

test('playlists with a pause of sound break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t);
  const { advance } = await publish();
  await advance(10);
  await advance(17, { tracks: [VIDEO] });
  await advance(40);
  t.deepEqual(broken(), []);
});

test('playlists whose key frames come to be further apart break no rule of HLS, but change their target', async (t) => {
  const { publish, broken } = await open(t);
  const { advance } = await publish();
  await advance(12);
  await advance(60, { gop: 150 });
  t.deepEqual(broken('target-duration-changed'), []);
});

test('playlists that reach back to segments on the disk break no rule of HLS', async (t) => {
  const { publish, broken, look } = await open(t, await rewinding(t));
  const first = await publish();
  await first.advance(50);
  first.input.close('the connection was lost');
  await look();
  const second = await publish();
  await second.advance(20);
  t.deepEqual(broken(), []);
});

for (const seed of [1, 2, 3])
  test(`playlists of made-up stream ${seed} break no rule of HLS`, async (t) => {
    const { publish, broken } = await open(t);
    const random = seeded(seed);
    const one = <T>(...those: readonly [T, ...T[]]): T => those[Math.floor(random() * those.length)] ?? those[0];
    let { input, advance } = await publish();
    let at = 0;
    let gop = 60;
    const goOn = async (events: readonly Packet[] = []) =>
      advance((at += 1 + Math.round(90 * random()) / 10), { gop, events });
    await goOn();
    for (let step = 0; step < 8; step++) {
      const what = one('splice', 'cue', 'key frames', 'return');
      const out = random() < 0.7;
      const duration = Math.ceil(8 * random());
      if (what === 'splice')
        await goOn([splice(at, spliceInsert({ eventId: one(1, 2), out, duration, autoReturn: one(true, false) }))]);
      if (what === 'cue') await goOn([cue(at, { cueType: out ? 'out' : 'in', duration: duration * 990 })]);
      if (what === 'key frames') {
        gop = one(25, 30, 45, 50, 60, 75, 120);
        await goOn();
      }
      if (what === 'return') {
        input.close('the connection was lost');
        await delay(duration * 1000);
        ({ input, advance } = await publish());
        at = 0;
        await goOn();
      }
    }
    t.deepEqual(broken('target-duration-changed'), []);
  });

test('playlists of several renditions, one of which is away for a time, break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t, {}, LADDER);
  const { advance } = await publish([VIDEO, AUDIO, SMALL, GERMAN, SCTE35, CUE]);
  const tracks = [VIDEO, AUDIO, SMALL, GERMAN];
  await advance(9, {
    tracks,
    events: [splice(9, spliceInsert({ eventId: 1, out: true, duration: 6, autoReturn: true }))],
  });
  await advance(20, { tracks });
  await advance(30, { tracks: [VIDEO, AUDIO, GERMAN] });
  await advance(55, { tracks });
  t.deepEqual(broken(), []);
});

/** Settings with which players rewind for less time than the streams last. */
async function rewinding(t: ExecutionContext, eventPlaylistType = false) {
  const tempStoragePath = await mkdtemp(join(tmpdir(), 'kiln-rules-'));
  t.teardown(() => rm(tempStoragePath, { recursive: true, force: true, maxRetries: 5 }));
  return { dvr: { enable: true, tempStoragePath, maxDuration: 40, eventPlaylistType } };
}

test('playlists that reach back, with splices and cues, break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t, await rewinding(t));
  const { advance } = await publish();
  await advance(6, { events: [splice(6, spliceInsert({ eventId: 1, out: true, duration: 8 }))] });
  await advance(12, { events: [splice(12, spliceInsert({ eventId: 1, out: false }))] });
  await advance(16, { events: [cue(16, { cueType: 'out', duration: 3990 })] });
  await advance(26, { events: [splice(26, spliceInsert({ eventId: 2, out: true, duration: 5, autoReturn: true }))] });
  await advance(34, { events: [cue(34, { cueType: 'out', duration: 60_000 })] });
  await advance(38, { events: [cue(38, { cueType: 'in' })] });
  await advance(100);
  t.deepEqual(broken(), []);
});

test('playlists of type EVENT that are concluded break no rule of HLS, but leave low latency', async (t) => {
  const { publish, broken, look, conclude } = await open(t, await rewinding(t, true));
  const { advance } = await publish();
  await advance(21);
  conclude();
  await look();
  await advance(25);
  t.deepEqual(broken('header-changed-at-end'), []);
});

test('playlists that reach back beyond another configuration of the picture break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t, await rewinding(t));
  const { advance, output } = await publish();
  await advance(10);
  output.setTracks([videoTrack({ config: AVC_HIGH, width: 1280, height: 720 }), AUDIO, SCTE35, CUE]);
  await advance(40);
  t.deepEqual(broken(), []);
});

for (const [kind, event] of [
  ['that reach back', false],
  ['of type EVENT', true],
] as const)
  test(`playlists ${kind} of a publisher that comes back break no rule of HLS`, async (t) => {
    const { publish, broken, look } = await open(t, await rewinding(t, event));
    const first = await publish();
    await first.advance(15);
    first.input.close('the connection was lost');
    await look();
    const second = await publish();
    await second.advance(80);
    t.deepEqual(broken(), []);
  });
