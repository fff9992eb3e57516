import test from 'ava';
import type { Encoding } from '../../../src/transcode/encoding.ts';
import { silentOutputs } from '../../../src/transcode/silence.ts';
import { audioTrack, videoTrack } from '../../support/media/packets.ts';
import { audioEncoding, imageEncoding, videoEncoding } from './sources.ts';

const HANG = 10_000;
/** Seconds, but for when it last put out something. */
interface Shape {
  readonly reached?: number;
  readonly resumeAt?: number;
  readonly ended?: boolean;
  readonly lastAt?: number;
}

const output = (shape: Shape, encoding: Encoding = videoEncoding()) => {
  const job = { from: encoding.type === 'audio' ? audioTrack() : videoTrack(), encoding };
  return { job, resumeAt: undefined, reached: undefined, ended: false, lastAt: 0, ...shape };
};
/** A feed that has handed over so many seconds of everything. */
const fed = (from: number, to: number) => ({ fed: () => ({ from, to }) });

test('an output that its input has left behind is silent', (t) => {
  const silent = output({ reached: 4 });
  const never = output({});
  const current = output({ reached: 19 });
  t.deepEqual(silentOutputs([silent, never, current], fed(0, 20), HANG, HANG), [silent, never]);
});

test('an output is not silent before its time, with nothing to put out, or when it has ended', (t) => {
  const outputs = [output({ lastAt: 1 }), output({ resumeAt: 18 }), output({ ended: true })];
  t.deepEqual(silentOutputs(outputs, fed(0, 20), HANG, HANG), []);
  t.deepEqual(silentOutputs([output({})], { fed: () => undefined }, HANG, HANG), []);
  t.deepEqual(silentOutputs([output({})], fed(0, 3), HANG, HANG), []);
});

test('frames that an encoder holds back by its options are waited for', (t) => {
  const patient = [
    imageEncoding({ framerate: 0.05 }),
    videoEncoding({ framerate: 2, lookahead: 40 }),
    videoEncoding({ skipFrames: 99 }),
  ].map((encoding) => output({}, encoding));
  t.deepEqual(silentOutputs(patient, fed(0, 20), HANG, HANG), []);
  t.deepEqual(silentOutputs(patient, fed(0, 100), HANG, HANG), patient);
  const prompt = [audioEncoding(), videoEncoding()].map((encoding) => output({}, encoding));
  t.deepEqual(silentOutputs(prompt, fed(0, 20), HANG, HANG), prompt);
});
