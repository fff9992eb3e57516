import test from 'ava';
import { buildAdtsHeader } from '../../../../src/codecs/aac-adts.ts';
import { BitstreamError } from '../../../../src/codecs/bits.ts';
import { AudioIntake } from '../../../../src/providers/intake/audio-intake.ts';
import { Random } from '../../../soak/random.ts';

/** LC, 48 kHz, stereo. */
const FORMAT = { objectType: 2, samplerate: 48_000, channelConfiguration: 2 };
const CONFIG = Buffer.of(0x11, 0x90);
const RAW = Buffer.from('2110048c', 'hex');

const adts = (raw = RAW): Buffer => Buffer.concat([buildAdtsHeader(FORMAT, raw.length), raw]);

/** With the two bytes of a checksum, which the cleared protection_absent tells of. */
function adtsWithChecksum(raw = RAW): Buffer {
  const header = buildAdtsHeader(FORMAT, raw.length + 2);
  header[1] = 0xf0;
  return Buffer.concat([header, Buffer.of(0, 0), raw]);
}

const intake = (): AudioIntake => new AudioIntake({ id: 1, codec: 'AAC' });

test('frames with an ADTS header each come out raw, and give the configuration where nothing else does', (t) => {
  for (const frame of [adts(), adtsWithChecksum()]) {
    const unit = intake().frame(frame, 7);
    t.deepEqual(unit?.data, RAW);
    t.like(unit, { time: 7, duration: 1024 });
    t.like(unit?.track, { codec: 'AAC', samplerate: 48_000, channels: 2, config: CONFIG });
  }
});

test('a configuration that has come counts, and not that of ADTS headers', (t) => {
  const both = intake();
  // HE-AAC: 24 kHz with SBR, of which ADTS tells nothing
  const config = Buffer.from('2b098800', 'hex');
  both.configure(config);
  const unit = both.frame(adts(), 0);
  t.deepEqual(unit?.data, RAW);
  t.deepEqual((unit?.track as { config?: Buffer }).config, config);
});

test('raw frames stay as they are, and cannot be decoded without a configuration', (t) => {
  t.is(intake().frame(RAW, 0), undefined);
  const configured = intake();
  configured.configure(CONFIG);
  t.is(configured.frame(RAW, 0)?.data, RAW);
  // it begins like a header, and is longer than the frame: none
  const odd = Buffer.concat([buildAdtsHeader(FORMAT, 1000), RAW]);
  t.is(configured.frame(odd, 0)?.data, odd);
});

test('several ADTS frames at once, and random bytes behind a header, are an error or a frame', (t) => {
  t.throws(() => intake().frame(Buffer.concat([adts(), adts()]), 0), { instanceOf: BitstreamError });
  const random = new Random(25);
  for (let i = 0; i < 2000; i++) {
    const data = Buffer.concat([Buffer.of(0xff, 0xf1), random.bytes(random.below(20))]);
    try {
      intake().frame(data, 0);
    } catch (error) {
      t.true(error instanceof BitstreamError, String(error));
    }
  }
});
