import test from 'ava';
import { buildOpusHead, parseOpusConfig } from '../../../../src/codecs/opus.ts';
import { audioState, pcmForm } from '../../../../src/containers/elementary/audio.ts';

/** Packets of 20 ms, by the bit that tells of their channels (RFC 6716 section 3.1). */
const MONO = Buffer.of(0b01111_000, 1, 2);
const STEREO = Buffer.of(0b01111_100, 1, 2);

test('Opus without a header has two channels, whatever its packets say', (t) => {
  for (const packets of [
    [MONO, STEREO],
    [STEREO, MONO],
    [MONO, MONO],
  ]) {
    const state = audioState('OPUS');
    t.deepEqual(
      packets.map((packet) => state.samples(packet)),
      [960, 960],
    );
    t.like(state.format, { samplerate: 48_000, channels: 2 });
    t.is(parseOpusConfig(state.format?.config ?? Buffer.alloc(0)).channels, 2);
  }
});

test('Opus with a header has the channels of that', (t) => {
  const state = audioState('OPUS');
  const told = { preSkip: 312, inputSamplerate: 48_000, outputGain: 0, mappingFamily: 0, mapping: undefined };
  state.configure(buildOpusHead({ ...told, channels: 1 }));
  state.samples(STEREO);
  t.is(state.format?.channels, 1);
});

test('G.711 counts a byte for each sample of each channel', (t) => {
  for (const [samplerate, channels, bytes, samples] of [
    [8000, 1, 160, 160],
    [16_000, 1, 320, 320],
    [8000, 2, 320, 160],
    [8000, 2, 321, 160],
    [8000, 2, 1, 0],
  ] as const) {
    const state = audioState('PCMU', { samplerate, channels });
    t.is(state.samples(Buffer.alloc(bytes)), samples);
    t.deepEqual(state.format, { samplerate, channels });
  }
  t.deepEqual(audioState('PCMA').format, { samplerate: 8000, channels: 1 });
});

test('G.722 counts a byte for two samples of 16 kHz of each channel', (t) => {
  t.is(audioState('G722').samples(Buffer.alloc(160)), 320);
  t.deepEqual(audioState('G722', { samplerate: 8000, channels: 1 }).format, { samplerate: 16_000, channels: 1 });
  t.is(audioState('G722', { samplerate: 8000, channels: 2 }).samples(Buffer.alloc(160)), 160);
});

test('invalid parameters of G.711 are replaced by the usual ones', (t) => {
  t.deepEqual(pcmForm({ samplerate: 48_000, channels: 0 }), { samplerate: 48_000, channels: 1 });
  t.deepEqual(pcmForm({ samplerate: 1e9, channels: 2 }), { samplerate: 8000, channels: 2 });
  t.deepEqual(pcmForm({ samplerate: 0, channels: 200 }), { samplerate: 8000, channels: 1 });
});
