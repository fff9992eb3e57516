import test from 'ava';
import type { Track } from '../../../../src/core/track.ts';
import type { LiveSink } from '../../../../src/channels/sources/live-source.ts';
import type { LiveSources } from '../../../../src/channels/sources/live-sources.ts';
import { LiveItem } from '../../../../src/channels/scheduled/live-item.ts';
import {
  audioPackets,
  audioTrack,
  dataTrack,
  eventPacket,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** A stream as an item, on the air. */
async function open(tracks: readonly Track[], toleranceMs = 500, forwardData = false) {
  let sink: LiveSink | undefined;
  const sources = {
    open: async (_url: unknown, _by: unknown, taker: LiveSink) => {
      sink = taker;
      taker.tracks(tracks);
      return { close: () => {} };
    },
  } as unknown as LiveSources;
  const live = new LiveItem({
    sources,
    url: { vhost: 'default', app: 'app', stream: 'cam' },
    by: {} as never,
    wishes: { video: true, audio: [{ name: 'Audio' }] },
    forwardData,
    toleranceMs,
    onChange: () => {},
  });
  await new Promise(setImmediate);
  const { tracks: retrack, packet } = sink as LiveSink;
  /** Plays a time of the stream, in seconds. */
  const play = (from: number, to: number, what: { video?: number; audio?: boolean }): void => {
    const { video = 0, audio = true } = what;
    const pictures = video === 0 ? [] : videoPackets(VIDEO, { from, to, framerate: video, gop: 10 });
    for (const one of interleaved(pictures, audio ? audioPackets(AUDIO, { from, to }) : [])) {
      packet(one);
      live.taken();
      while (live.queue.take() !== undefined);
    }
  };
  return { live, play, packet, retrack };
}

test('a stream whose video stops while its audio goes on has failed', async (t) => {
  const { live, play } = await open([VIDEO, AUDIO]);
  play(0, 5, { video: 30 });
  t.is(live.state, 'playing');
  play(5, 5.9, {});
  t.is(live.state, 'playing');
  play(5.9, 6.5, {});
  t.is(live.state, 'ended');
  t.regex(live.failure ?? '', /video has stopped/);
});

test('an event has its place where it comes, whenever it takes effect', async (t) => {
  const events = dataTrack({ codec: 'SCTE35' });
  const { live, packet } = await open([VIDEO, AUDIO, events], 500, true);
  for (const one of videoPackets(VIDEO, { to: 2 })) packet(one);
  packet({ ...eventPacket(events, 90_000, 'splice'), pts: 9 * 90_000 });
  const lanes = [...live.queue.lanes()];
  const [splice] = lanes.find(([unit]) => unit?.track.type === 'data') ?? [];
  t.like(splice, { dts: 90_000, pts: 9 * 90_000, at: 1000, shownAt: 1000 });
});

test('video that comes seldom has not stopped, nor does what the channel tolerates count', async (t) => {
  const seldom = await open([VIDEO, AUDIO]);
  seldom.play(0, 30, { video: 0.5 });
  t.is(seldom.live.state, 'playing');
  const tolerant = await open([VIDEO, AUDIO], 5000);
  tolerant.play(0, 5, { video: 30 });
  tolerant.play(5, 9.5, {});
  t.is(tolerant.live.state, 'playing');
  tolerant.play(9.5, 11, {});
  t.is(tolerant.live.state, 'ended');
});

test('a stream that has no video, or none any more, plays on', async (t) => {
  const sound = await open([AUDIO]);
  sound.play(0, 20, {});
  t.is(sound.live.state, 'playing');
  const less = await open([VIDEO, AUDIO]);
  less.play(0, 5, { video: 30 });
  less.retrack([AUDIO]);
  less.play(5, 20, {});
  t.is(less.live.state, 'playing');
});

test('timestamps that jump are no video that has stopped, which is found out all the same after that', async (t) => {
  const { live, play } = await open([VIDEO, AUDIO]);
  play(0, 5, { video: 30 });
  for (const from of [13, 30, 20]) {
    // audio comes first
    play(from, from + 0.5, {});
    play(from + 0.5, from + 5, { video: 30 });
  }
  t.is(live.state, 'playing');
  play(25, 25.9, {});
  t.is(live.state, 'playing');
  play(25.9, 26.5, {});
  t.is(live.state, 'ended');
});
