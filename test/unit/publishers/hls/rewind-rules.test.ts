import { setTimeout as delay } from 'node:timers/promises';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Track } from '../../../../src/core/track.ts';
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
const LLHLS = { segmentDuration: 2, segmentCount: 8, chunkDuration: 0.5 };
const HLS = { segmentDuration: 2, segmentCount: 4 };
const MASTERS = ['/app/stream/llhls.m3u8', '/app/stream/ts:playlist.m3u8'];
/** How far a stream goes on between two looks, in seconds: a little less than a part. */
const STEP = 0.4;
const FIRST_LOOK = 3;

/** A node, whose stream's playlists of LL-HLS and HLS with MPEG-TS are looked at after each step. */
async function open(t: ExecutionContext, event = false) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rules-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const dvr = { enable: true, tempStoragePath: folder, maxDuration: 40, eventPlaylistType: event };
  virtualTime(t);
  const node = await openLlhlsNode(t, MemoryCluster.create(t, 1), 'a', {
    llhls: { ...LLHLS, dvr },
    hls: { ...HLS, dvr },
  });
  const get = async (url: string) => {
    const { statusCode, body } = await node.get(url);
    return statusCode === 200 ? body : undefined;
  };
  const histories = MASTERS.map((master) => new PlaylistHistory(get, master));
  const look = async () => {
    for (const history of histories) await history.look();
  };
  const publish = async () => {
    const { input, output } = await node.goLive(TRACKS);
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
        const span = { from: at, to: Math.min(at + STEP, to), gop };
        const video = videoPackets(VIDEO, span).map(withNal);
        interleaved(video, audioPackets(AUDIO, span))
          .filter(({ track: { id } }) => tracks.some((track) => track.id === id))
          .forEach(write);
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
  readonly tracks?: readonly Track[];
}

test('playlists that reach back, with splices and cues, break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t);
  const { advance } = await publish();
  const cue = (seconds: number, told: object) =>
    eventPacket(CUE, seconds * CUE.timebase.den, Buffer.from(JSON.stringify(told)));
  const splice = (seconds: number, section: Buffer) => eventPacket(SCTE35, seconds * SCTE35.timebase.den, section);
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
  const { publish, broken, look, conclude } = await open(t, true);
  const { advance } = await publish();
  await advance(21);
  conclude();
  await look();
  await advance(25);
  t.deepEqual(broken('header-changed-at-end'), []);
});

test('playlists that reach back beyond another configuration of the picture break no rule of HLS', async (t) => {
  const { publish, broken } = await open(t);
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
    const { publish, broken, look } = await open(t, event);
    const first = await publish();
    await first.advance(15);
    first.input.close('the connection was lost');
    await look();
    const second = await publish();
    await second.advance(80);
    t.deepEqual(broken(), []);
  });
