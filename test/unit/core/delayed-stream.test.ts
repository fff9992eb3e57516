import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { Counters } from '../../../src/core/counters.ts';
import { delayed } from '../../../src/core/delayed-stream.ts';
import { InputStream } from '../../../src/core/input-stream.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';
import { AUDIO, audio, RTMP, Sink, VIDEO, video } from './support.ts';

function setUp(delayMs: number) {
  const source = new InputStream('live', RTMP, new Counters());
  source.setTracks([VIDEO]);
  return { source, late: delayed(source, delayMs) };
}

test('a delayed stream without a delay is the source itself', (t) => {
  const { source, late } = setUp(0);
  t.is(late, source);
});

test('tracks and packets come later, in the order in which they came', async (t) => {
  virtualTime(t);
  const { source, late } = setUp(100);
  const heard: unknown[] = [];
  late.on('tracks', (tracks) => heard.push(tracks.length));
  late.read({ packet: ({ dts, track }) => void heard.push([track.type, dts]) });
  t.deepEqual(late.tracks, [VIDEO]);
  source.write(video(0, true));
  source.setTracks([VIDEO, AUDIO]);
  source.write(audio(1));
  t.deepEqual(heard, []);
  t.deepEqual(late.tracks, [VIDEO]);
  await delay(99);
  t.deepEqual(heard, []);
  await until('the audio', () => heard.length === 3);
  t.deepEqual(heard, [['video', 0], 2, ['audio', 48_000]]);
  source.write(video(2, true));
  await until('another packet', () => heard.length === 4);
});

test('a delayed stream is shared by readers of the same delay, and later ones find what came before', async (t) => {
  const { source, late } = setUp(100);
  t.is(delayed(source, 100), late);
  t.not(delayed(source, 200), late);
  t.is(source.readers, 2);
  source.write(video(0, true));
  const sink = new Sink();
  late.read(sink).close();
  const other = new Sink();
  late.read(other);
  await until('the packet', () => other.packets.length === 1);
  t.deepEqual(sink.packets, []);
});

test('a listener for tracks that throws does no harm', async (t) => {
  const { source, late } = setUp(10);
  const faults: unknown[] = [];
  source.on('fault', (error) => faults.push(error));
  late.on('tracks', () => {
    throw new Error('broken');
  });
  const sink = new Sink();
  late.read(sink);
  source.write(video(0, true));
  source.setTracks([VIDEO, AUDIO]);
  source.write(audio(1));
  await until('the sound', () => sink.packets.length === 2);
  t.like(faults, [{ message: 'broken' }]);
});

test('a delayed stream ends with its source, and asks it for key frames', (t) => {
  const { source, late } = setUp(1000);
  const sink = new Sink();
  let wanted = 0;
  source.on('keyWanted', () => wanted++);
  late.read(sink);
  t.true(wanted > 0);
  source.write(video(0, true));
  source.close('the publisher left');
  t.deepEqual(sink.reasons, ['the publisher left']);
  t.true(late.closed);
  const after = new Sink();
  late.read(after);
  t.deepEqual(after.reasons, ['the stream has ended']);
  t.deepEqual(sink.packets, []);
});

test('a stream that has ended before is one that has ended', (t) => {
  const { source, late } = setUp(10);
  source.close('it is over');
  const sink = new Sink();
  late.read(sink);
  t.is(sink.reasons.length, 1);
  t.true(late.closed);
});

test('a reader that throws is detached and reported by its stream', async (t) => {
  const { source, late } = setUp(10);
  const faults: unknown[] = [];
  source.on('fault', (error) => faults.push(error));
  const sink = new Sink();
  late.read({
    packet: () => {
      throw new Error('broken');
    },
  });
  late.read(sink);
  source.write(video(0, true));
  await until('the other one goes on', () => sink.packets.length === 1);
  t.like(faults, [{ message: 'broken' }]);
  t.is(late.readers, 1);
});
