import test from 'ava';
import { buildAudioSpecificConfig } from '../../../src/codecs/aac.ts';
import { buildOpusConfig, packetSamples } from '../../../src/codecs/opus.ts';
import { silentPacket } from '../../../src/codecs/silence.ts';

const hex = (data: Buffer | undefined) => data?.toString('hex');
const aac = (channels: number) => ({
  codec: 'AAC',
  config: buildAudioSpecificConfig({ samplerate: 48_000, channels }),
});

test('silent AAC has the elements of its channel configuration, and nothing in them', (t) => {
  // SCE: id 0, tag 0, gain 0, an empty ics_info, no pulses, TNS or gain control; END
  t.is(hex(silentPacket(aac(1))), '00000007');
  // CPE: id 1, tag 0, no common window, twice the same; END
  t.is(hex(silentPacket(aac(2))), '2000000000000e');
  for (const channels of [3, 4, 5, 6, 7, 8]) t.truthy(silentPacket(aac(channels)), `${channels}`);
});

test('there is no silent packet for channels of a program config element, nor for other object types', (t) => {
  t.is(silentPacket({ codec: 'AAC', config: Buffer.from('1180', 'hex') }), undefined);
  t.is(silentPacket({ codec: 'AAC', config: Buffer.from('3110', 'hex') }), undefined);
  t.is(silentPacket({ codec: 'AAC', config: Buffer.alloc(0) }), undefined);
  t.is(silentPacket({ codec: 'AAC' }), undefined);
  t.is(silentPacket({ codec: 'AC3' }, Buffer.alloc(100)), undefined);
});

test('silent Opus lasts 20 ms in every stream', (t) => {
  const head = { preSkip: 312, inputSamplerate: 48_000, outputGain: 0 };
  const of = (channels: number, mapping?: { streams: number; coupled: number; channels: Buffer }) =>
    silentPacket({
      codec: 'OPUS',
      config: buildOpusConfig({ ...head, channels, mappingFamily: mapping === undefined ? 0 : 1, mapping }),
    });
  t.is(hex(of(1)), 'f8fffe');
  t.is(hex(of(2)), 'fcfffe');
  const surround = of(6, { streams: 4, coupled: 2, channels: Buffer.of(0, 4, 1, 2, 3, 5) });
  t.is(hex(surround), 'fc02fffefc02fffef802fffef8fffe');
  t.is(packetSamples(surround as Buffer), 960);
  t.is(hex(silentPacket({ codec: 'OPUS' })), 'fcfffe');
  t.is(silentPacket({ codec: 'OPUS', config: Buffer.of(0, 2) }), undefined);
});

test('silent MP3 is a frame of the same size without anything in it', (t) => {
  // layer III of MPEG-1, 128 kbit/s, 48 kHz, with a CRC
  const like = Buffer.alloc(384, 0x55);
  Buffer.from('fffa9400', 'hex').copy(like);
  const silent = silentPacket({ codec: 'MP3' }, like) as Buffer;
  t.is(silent.length, 384);
  t.is(hex(silent.subarray(0, 6)), 'fffb94000000');
  t.true(silent.subarray(4).every((byte) => byte === 0));
  t.is(silentPacket({ codec: 'MP3' }, like.subarray(0, 300)), undefined);
  t.is(silentPacket({ codec: 'MP3' }), undefined);
});
