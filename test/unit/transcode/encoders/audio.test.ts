import test from 'ava';
import { audioOptions } from '../../../../src/transcode/encoders/audio.ts';
import type { AudioEncoding } from '../../../../src/transcode/encoding.ts';

const STEREO: AudioEncoding = {
  type: 'audio',
  codec: 'OPUS',
  bitrate: 128_000,
  samplerate: 48_000,
  channels: 2,
  modules: undefined,
};

test('the search of an encoder is cheaper from 64 kbit/s of a channel on', (t) => {
  const searchOf = (encoding: Partial<AudioEncoding>, encoder: string) => {
    const options = audioOptions({ ...STEREO, ...encoding }, encoder);
    return options.filter((_, at) => ['-compression_level', '-aac_coder'].includes(options[at - 1] ?? ''));
  };
  t.deepEqual(searchOf({}, 'libopus'), ['7']);
  t.deepEqual(searchOf({}, 'aac'), ['fast']);
  t.deepEqual(searchOf({ bitrate: 64_000, channels: 1 }, 'libopus'), ['7']);
  t.deepEqual(searchOf({ bitrate: 127_999 }, 'libopus'), []);
  t.deepEqual(searchOf({ bitrate: 96_000 }, 'aac'), []);
  t.deepEqual(searchOf({ bitrate: 63_999, channels: 1 }, 'aac'), []);
});

test('an encoder without options of its own gets its name and the bitrate', (t) => {
  t.deepEqual(audioOptions(STEREO, 'libmp3lame'), ['-c:a', 'libmp3lame', '-b:a', '128000']);
  t.deepEqual(audioOptions(STEREO, 'libfdk_aac').slice(-2), ['-profile:a', 'aac_low']);
});
