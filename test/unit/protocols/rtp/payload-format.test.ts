import test from 'ava';
import { buildAudioSpecificConfig } from '../../../../src/codecs/aac.ts';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import { splitAnnexB } from '../../../../src/codecs/nal.ts';
import { payloadFormat } from '../../../../src/protocols/rtp/payload-format.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { vector } from '../../codecs/vectors.ts';

const [SPS, PPS] = splitAnnexB(vector('h264-baseline.h264')).filter((nal) =>
  [7, 8].includes((nal[0] as number) & 31),
) as [Buffer, Buffer];

test('H.264 is described with its profile and parameter sets, or without those that are in its packets', (t) => {
  const config = buildAvcConfig({ sps: [SPS], pps: [PPS] });
  t.deepEqual(payloadFormat({ ...videoTrack(), codec: 'H264', config }), {
    encoding: 'H264',
    clockRate: 90_000,
    parameters:
      `packetization-mode=1;profile-level-id=${SPS.subarray(1, 4).toString('hex').toUpperCase()};` +
      `sprop-parameter-sets=${SPS.toString('base64')},${PPS.toString('base64')}`,
  });
  const { config: _, ...bare } = { ...videoTrack(), codec: 'H264' as const };
  t.is(payloadFormat(bare)?.parameters, 'packetization-mode=1');
});

test('AAC is described with its configuration, and not without one', (t) => {
  const config = buildAudioSpecificConfig({ objectType: 2, samplerate: 48_000, channels: 2 } as never);
  const format = payloadFormat({ ...audioTrack(), codec: 'AAC', samplerate: 48_000, channels: 2, config });
  t.like(format, { encoding: 'mpeg4-generic', clockRate: 48_000, channels: 2 });
  t.regex(format?.parameters ?? '', new RegExp(`mode=AAC-hbr;.*;config=${config.toString('hex')}$`));
  t.is(payloadFormat({ ...audioTrack(), codec: 'AAC', config: Buffer.alloc(0) }), undefined);
});

test('audio has the payload types and clocks of its formats', (t) => {
  const audio = (codec: never, more: object = {}) => payloadFormat({ ...audioTrack(), codec, ...more });
  t.like(audio('OPUS' as never, { channels: 1 }), {
    encoding: 'opus',
    clockRate: 48_000,
    channels: 2,
    parameters: 'sprop-stereo=0',
  });
  t.is(audio('OPUS' as never, { channels: 6 }), undefined);
  t.deepEqual(audio('MP3' as never), { encoding: 'MPA', clockRate: 90_000, payloadType: 14 });
  t.like(audio('PCMU' as never, { samplerate: 8000, channels: 1 }), { encoding: 'PCMU', payloadType: 0 });
  t.deepEqual(audio('G722' as never, { samplerate: 16_000, channels: 1 }), {
    encoding: 'G722',
    clockRate: 8000,
    channels: 1,
    payloadType: 9,
  });
  t.is(audio('PCMA' as never, { samplerate: 16_000, channels: 1 })?.payloadType, undefined);
  t.deepEqual(audio('AC3' as never, { samplerate: 48_000, channels: 6 }), {
    encoding: 'ac3',
    clockRate: 48_000,
    channels: 6,
  });
});
