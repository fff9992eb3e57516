import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Track } from '../../../../src/core/track.ts';
import { JoinedIntake, type Feed } from '../../../../src/providers/hls-pull/joined-intake.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

const SECOND = 90_000;
const VIDEO = videoTrack();
const AUDIO = audioTrack();

function joined(t: ExecutionContext) {
  const tracks: string[] = [];
  const packets: (readonly [type: string, seconds: number])[] = [];
  const failures: string[] = [];
  const intake = new JoinedIntake({
    sink: {
      setTracks: (all: readonly Track[]) => void tracks.push(all.map(({ type }) => type).join(' ')),
      write: ({ track, dts }: Packet) => void packets.push([track.type, dts / track.timebase.den]),
    },
    keepsTimes: false,
    onFailure: (reason) => void failures.push(reason),
  });
  t.teardown(() => intake.close());
  const video = intake.feed(() => [VIDEO]);
  const audio = intake.feed(() => [AUDIO]);
  video.period = '0';
  audio.period = '0';
  intake.announce(video, { video: [0], audio: [] }, new Set([0]));
  intake.announce(audio, { video: [], audio: [0] }, new Set([1]));
  const unit = (feed: Feed, seconds: number, key = true): void => {
    const track = feed === video ? VIDEO : AUDIO;
    const duration = feed === video ? 0 : 1024;
    intake.unit(feed, { track, data: Buffer.alloc(4), key, time: seconds * SECOND, compositionTime: 0, duration });
  };
  return { intake, video, audio, unit, tracks, packets, failures };
}

/** Whether a promise is kept after some turns of the event loop. */
async function isKept(promise: Promise<void>): Promise<boolean> {
  return await Promise.race([promise.then(() => true), new Promise<false>((done) => setTimeout(() => done(false), 5))]);
}

test('a stream begins where its video begins, when the audio has got there', async (t) => {
  const { intake, video, audio, unit, tracks, packets } = joined(t);
  for (const seconds of [94, 97]) unit(audio, seconds);
  t.false(await isKept(intake.turn(audio)));
  unit(video, 100);
  t.false(await isKept(intake.turn(video)));
  t.true(await isKept(intake.turn(audio)));
  unit(audio, 99);
  t.deepEqual(tracks, []);
  unit(audio, 101);
  t.true(await isKept(intake.turn(video)));
  unit(video, 102);
  t.deepEqual(tracks, ['video audio']);
  t.deepEqual(packets, [
    ['video', 0],
    ['audio', 1],
    ['video', 2],
  ]);
});

test('audio that has ended, or never comes, does not hold the video back', async (t) => {
  const ended = joined(t);
  ended.unit(ended.video, 100);
  ended.intake.end(ended.audio);
  t.is(await isKept(ended.intake.turn(ended.video)), true);
  const late = joined(t);
  late.unit(late.video, 100);
  await late.intake.turn(late.video);
  late.unit(late.video, 101);
  // it joins when it comes, from where the video began on
  late.unit(late.audio, 99);
  late.unit(late.audio, 104);
  late.unit(late.audio, 105);
  await new Promise((resolve) => setTimeout(resolve, 0));
  late.intake.close();
  t.deepEqual(late.failures, []);
});

test('both go on together behind a discontinuity', (t) => {
  const { video, audio, unit, packets } = joined(t);
  unit(video, 100);
  unit(video, 101);
  unit(audio, 100);
  unit(audio, 101);
  video.period = '1';
  unit(video, 5000);
  audio.period = '1';
  unit(audio, 5000.5);
  t.deepEqual(
    packets.filter(([type]) => type === 'video'),
    [
      ['video', 0],
      ['video', 1],
      ['video', 2],
    ],
  );
  const [, , last] = packets.filter(([type]) => type === 'audio');
  t.true(Math.abs((last?.[1] ?? 0) - 2.5) < 0.01, String(last));
});

test('audio of another discontinuity waits until it comes to that of the video', (t) => {
  const { video, audio, unit, packets, tracks } = joined(t);
  unit(audio, 100);
  video.period = '1';
  unit(video, 30);
  unit(audio, 105);
  t.deepEqual(tracks, []);
  audio.period = '1';
  unit(audio, 30);
  t.deepEqual(packets, [
    ['video', 0],
    ['audio', 0],
  ]);
});

test('audio with other times than the video is a failure', (t) => {
  const { video, audio, unit, failures } = joined(t);
  unit(video, 100);
  unit(audio, 20_000);
  t.deepEqual(failures, ['the times of its audio are others than those of its video']);
});

test('no more than some bytes are held back', async (t) => {
  const { intake, video, audio, unit } = joined(t);
  unit(video, 100);
  const held = intake.turn(video);
  for (let n = 0; n < 9; n++)
    intake.unit(audio, {
      track: AUDIO,
      data: Buffer.alloc(4 * 1024 * 1024),
      key: true,
      time: n * SECOND,
      compositionTime: 0,
      duration: 1024,
    });
  t.true(await isKept(held));
});
