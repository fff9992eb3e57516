import test from 'ava';
import { TrackMeter } from '../../../src/core/meter.ts';
import { AUDIO, audio, VIDEO, video } from './support.ts';

/** `seconds` of video at 25 frames a second, a key frame each second: 1000 bytes, the others 100. */
function feed(meter: TrackMeter, seconds: number, start = 0): void {
  for (let frame = 0; frame < seconds * 25; frame++) {
    const key = frame % 25 === 0;
    meter.add(video(start + frame / 25, key, key ? 1000 : 100));
  }
}

test('rates over the life of a track and its last second', (t) => {
  const meter = new TrackMeter(VIDEO);
  feed(meter, 3);
  meter.add(video(3, true, 1000));
  const measured = meter.read();
  t.is(measured.bitrateAvg, (1000 + 24 * 100) * 8);
  t.is(measured.bitrateLatest, (1000 + 24 * 100) * 8);
  t.is(measured.framerateAvg, 25);
  t.is(measured.framerateLatest, 25);
  t.is(measured.maxFramerate, 25);
  t.is(measured.keyFrameIntervalAvg, 25);
  t.is(measured.keyFrameIntervalLatest, 25);
  t.is(measured.deltaFramesSinceLastKeyFrame, 0);
});

test('a meter without packets reports zero', (t) => {
  const meter = new TrackMeter(VIDEO);
  const nothing = { bitrateAvg: 0, bitrateLatest: 0, framerateAvg: 0, keyFrameIntervalAvg: 0, configChangeCount: 0 };
  t.like(meter.read(), nothing);
  meter.add(video(0, true, 100_000));
  t.like(meter.read(), nothing);
  t.is(meter.read().lastConfigChanged, undefined);
});

test('the latest second forgets what was before', (t) => {
  const meter = new TrackMeter(VIDEO);
  feed(meter, 2);
  for (let frame = 0; frame <= 10; frame++) meter.add(video(2 + frame / 10, frame === 0, 500));
  const measured = meter.read();
  t.is(measured.framerateLatest, 10);
  t.is(measured.bitrateLatest, 10 * 500 * 8);
  t.is(measured.maxFramerate, 25);
});

test('key frame intervals of different length', (t) => {
  const meter = new TrackMeter(VIDEO);
  const keys = new Set([0, 10, 40]);
  for (let frame = 0; frame < 45; frame++) meter.add(video(frame / 25, keys.has(frame)));
  t.like(meter.read(), { keyFrameIntervalAvg: 20, keyFrameIntervalLatest: 30, deltaFramesSinceLastKeyFrame: 4 });
});

test('delta frames in front of the first key frame', (t) => {
  const meter = new TrackMeter(VIDEO);
  for (let frame = 0; frame < 3; frame++) meter.add(video(frame / 25, false));
  t.is(meter.read().deltaFramesSinceLastKeyFrame, 3);
  meter.add(video(3 / 25, true));
  t.like(meter.read(), { deltaFramesSinceLastKeyFrame: 0, keyFrameIntervalAvg: 0 });
});

test('B-frames show in the order of presentation', (t) => {
  const meter = new TrackMeter(VIDEO);
  meter.add(video(0, true, 100, VIDEO, 0.08));
  meter.add(video(0.04, false, 100, VIDEO, 0.2));
  t.false(meter.read().hasBframes);
  meter.add(video(0.08, false, 100, VIDEO, 0.12));
  t.true(meter.read().hasBframes);
  meter.replaced({ ...VIDEO, width: 640 });
  meter.add(video(0.12, true));
  meter.add(video(0.16, false));
  t.false(meter.read().hasBframes, 'another configuration begins anew');
});

test('a jump of the clock is no time that passed and no B-frame', (t) => {
  for (const jump of [-5, 3600]) {
    const meter = new TrackMeter(VIDEO);
    feed(meter, 10, 100);
    feed(meter, 10, 100 + 10 + jump - (jump < 0 ? 10 : 0));
    const measured = meter.read();
    t.is(Math.round(measured.framerateAvg * 1e6) / 1e6, 25);
    t.false(measured.hasBframes);
  }
});

test('a change of configuration is counted, and the largest size kept', (t) => {
  const meter = new TrackMeter({ ...VIDEO, framerate: 50 });
  t.like(meter.read(), { maxWidth: 1280, maxHeight: 720, maxFramerate: 50 });
  meter.replaced({ ...VIDEO, width: 640, height: 1080 });
  const measured = meter.read();
  t.like(measured, { configChangeCount: 1, maxWidth: 1280, maxHeight: 1080, maxFramerate: 50 });
  t.true(measured.lastConfigChanged instanceof Date);
});

test('an equal format in another object is no change of configuration', (t) => {
  const meter = new TrackMeter(VIDEO);
  feed(meter, 1, 0);
  meter.replaced({ ...VIDEO, bitrate: 1_000_000, framerate: 50, language: 'eng' });
  feed(meter, 1, 1);
  const measured = meter.read();
  t.like(measured, { configChangeCount: 0, lastConfigChanged: undefined, maxFramerate: 50 });
  t.is(Math.round(measured.framerateAvg * 1e6) / 1e6, 25);
});

test('frames around a change of configuration do not raise the rate', (t) => {
  const meter = new TrackMeter(VIDEO);
  for (let round = 0; round < 10; round++) {
    feed(meter, 1, round);
    meter.replaced({ ...VIDEO, width: round + 1 });
  }
  t.is(Math.round(meter.read().framerateAvg * 1e6) / 1e6, 25);
});

test('audio is measured with its bitrate', (t) => {
  const meter = new TrackMeter(AUDIO);
  for (let frame = 0; frame <= 94; frame++) meter.add(audio((frame * 1024) / 48_000, 200));
  const measured = meter.read();
  t.is(measured.bitrateAvg, 75_000);
  t.is(measured.deltaFramesSinceLastKeyFrame, 0);
  t.false(measured.hasBframes);
});
