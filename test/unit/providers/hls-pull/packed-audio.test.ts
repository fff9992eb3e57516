import test, { type ExecutionContext } from 'ava';
import { buildAdtsHeader } from '../../../../src/codecs/aac-adts.ts';
import { id3Tag } from '../../../../src/containers/id3.ts';
import { beginsPackedAudio, PackedAudioReader } from '../../../../src/providers/hls-pull/packed-audio.ts';
import type { MediaUnit } from '../../../../src/providers/intake/media-unit.ts';
import { recordLog } from '../../../support/media/input-recorder.ts';
import { FaultLog } from '../../../../src/log/log.ts';
import { seeded } from '../../codecs/vectors.ts';

const RAW = Buffer.from('211004608c1c', 'hex');
const ADTS = Buffer.concat([
  buildAdtsHeader({ objectType: 2, samplerate: 48_000, channelConfiguration: 2 }, RAW.length),
  RAW,
]);
const tag = (stamp: bigint): Buffer => {
  const data = Buffer.alloc(8);
  data.writeBigUInt64BE(stamp);
  return id3Tag([{ id: 'PRIV', owner: 'com.apple.streaming.transportStreamTimestamp', data }]);
};
const segment = (stamp: bigint, frames: number): Buffer =>
  Buffer.concat([tag(stamp), ...Array.from({ length: frames }, () => ADTS)]);

function reader(t: ExecutionContext) {
  const units: MediaUnit[] = [];
  const announced: unknown[] = [];
  const { log, lines } = recordLog();
  const faults = new FaultLog(log);
  t.teardown(() => faults.close());
  const events = {
    tracks: (of: unknown) => void announced.push(of),
    unit: (unit: MediaUnit) => void units.push(unit),
  };
  return { units, announced, lines, faults, reader: new PackedAudioReader({ faults, events }) };
}

test('frames begin at the time of the tag, and follow each other', (t) => {
  const { reader: packed, units, announced } = reader(t);
  // in single bytes, behind another tag
  for (const byte of Buffer.concat([id3Tag([{ id: 'TIT2', text: 'a' }]), segment(90_000n, 3)]))
    packed.push(Buffer.of(byte));
  packed.flush();
  packed.push(segment(2n ** 33n + 5n, 1));
  packed.flush();
  t.deepEqual(
    units.map(({ time }) => time),
    [90_000, 91_920, 93_840, 5],
  );
  t.deepEqual(announced, [{ video: [], audio: [0] }]);
  t.like(units[0]?.track, { id: 1, codec: 'AAC', samplerate: 48_000, channels: 2 });
  t.deepEqual(units[0]?.data, RAW);
  t.is(packed.tracks[0], units[0]?.track);
});

test('MP3 and AC-3 are known by their first bytes', (t) => {
  for (const [start, codec] of [
    ['fffb9064', 'MP3'],
    ['0b77', 'AC-3'],
  ] as const) {
    const { reader: packed, announced } = reader(t);
    packed.push(Buffer.concat([tag(0n), Buffer.from(start, 'hex'), Buffer.alloc(500)]));
    t.is(announced.length, 1, codec);
  }
});

test('what is no packed audio is rejected', (t) => {
  t.true(beginsPackedAudio(segment(0n, 1)));
  t.false(beginsPackedAudio(ADTS));
  const push = (bytes: Buffer) => () => reader(t).reader.push(bytes);
  t.throws(push(Buffer.concat([id3Tag([]), ADTS])), { name: 'PullError', message: /no timestamps/ });
  t.throws(push(Buffer.concat([tag(0n), Buffer.from('<html>')])), { name: 'PullError', message: /neither AAC/ });
  const large = Buffer.from('ID3\x04\0\0\x7f\0\0\0', 'latin1');
  t.throws(push(large), { name: 'PullError', message: /more than 1048576 bytes/ });
});

test('damaged packed audio is read or rejected', (t) => {
  const random = seeded(11);
  const whole = segment(90_000n, 6);
  const { reader: packed, units } = reader(t);
  let rejected = 0;
  for (let n = 0; n < 3000; n++) {
    const bytes = Buffer.from(whole.subarray(0, Math.floor(random() * whole.length)));
    for (let i = 0; i < 4 && bytes.length > 0; i++)
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    try {
      packed.push(bytes);
    } catch (error) {
      rejected++;
      t.is((error as Error).name, 'PullError', String(error));
    }
    packed.flush();
  }
  t.true(rejected > 0 && units.length > 0, `${rejected} rejected, ${units.length} units`);
});
