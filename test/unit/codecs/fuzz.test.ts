import test from 'ava';
import { buildHevcConfig } from '../../../src/codecs/h265-config.ts';
import { buildAvcConfig } from '../../../src/codecs/h264-config.ts';
import * as adts from '../../../src/codecs/aac-adts.ts';
import { LatmReader } from '../../../src/codecs/aac-latm.ts';
import { configOfAdts } from '../../../src/codecs/aac-program.ts';
import * as aac from '../../../src/codecs/aac.ts';
import { parseAc3Frame } from '../../../src/codecs/ac3.ts';
import * as av1 from '../../../src/codecs/av1.ts';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import * as h264 from '../../../src/codecs/h264.ts';
import { withoutRecoveryPoints } from '../../../src/codecs/recovery-point.ts';
import * as h265 from '../../../src/codecs/h265.ts';
import { parseMpegAudioFrame } from '../../../src/codecs/mpeg-audio.ts';
import { annexBToLengths, nalUnits, splitAnnexB, unescapeNal } from '../../../src/codecs/nal.ts';
import * as opus from '../../../src/codecs/opus.ts';
import * as vp8 from '../../../src/codecs/vp8.ts';
import * as vp9 from '../../../src/codecs/vp9.ts';
import { ParameterSets } from '../../../src/codecs/parameter-sets.ts';
import { box, ivfFrames, samples, seeded, vector } from './vectors.ts';

const avc = h264.parseAvcConfig(box(vector('h264-interlaced-hrd.mp4'), 'avcC'));
const avcMatrix = h264.parseAvcConfig(box(vector('h264-high10-422.mp4'), 'avcC'));
const hevc = h265.parseHevcConfig(box(vector('h265-422-hrd.mp4'), 'hvcC'));
/** AudioMuxElement with a StreamMuxConfig of AAC LC at 48 kHz, and a frame of two bytes; and the configuration alone. */
const latm = new BitWriter()
  .write(1, 3)
  .write(0, 6 + 4 + 3)
  .write(0x1190, 16)
  .write(0, 3)
  .write(0xff, 8)
  .write(0, 2)
  .write(2, 8)
  .write(0xabcd, 16)
  .finish();
const muxConfig = new BitWriter()
  .write(1, 2)
  .write(0, 6 + 4 + 3)
  .write(0x1190, 16)
  .write(0, 3)
  .write(0xff, 8)
  .write(0, 2)
  .finish();
const adtsHeader = adts.parseAdtsHeader(vector('aac-stereo.adts'));
const av1Unit = samples(vector('av1-aom-444.mp4'))[0] as Buffer;

function inBand({ placeOfSet, activeSets }: typeof h264 | typeof h265, sets: readonly Buffer[]): unknown {
  const known = new ParameterSets(placeOfSet);
  known.add(sets);
  return activeSets(known, 0);
}

/** A parser, and valid input to start from. */
const parsers: Record<string, [parse: (data: Buffer) => unknown, valid: Buffer[]]> = {
  'H.264 SPS': [h264.parseSps, [...avc.sps, ...avcMatrix.sps]],
  'H.264 record': [(data) => buildAvcConfig(h264.parseAvcConfig(data)), [box(vector('h264-baseline.mp4'), 'avcC')]],
  'H.264 in-band sets': [(data) => inBand(h264, [...avc.sps, ...avc.pps, data]), [...avcMatrix.sps, ...avcMatrix.pps]],
  'H.264 key frame': [h264.startOf, samples(vector('h264-open-gop.mp4')).slice(4, 7)],
  'H.264 without recovery points': [withoutRecoveryPoints, samples(vector('h264-open-gop.mp4')).slice(4, 7)],
  'H.264 canonical form': [
    (data) => ([1, 2, 4] as const).map((size) => bounded(h264.canonicalize(data, size).data, data.length * 4 + 4)),
    samples(vector('h264-open-gop.mp4')).slice(4, 7),
  ],
  'H.265 SPS': [h265.parseSps, [...hevc.sps]],
  'H.265 record': [
    (data) => {
      const config = h265.parseHevcConfig(data);
      return [h265.codecString(config), buildHevcConfig(config)];
    },
    [box(vector('h265-main.mp4'), 'hvcC')],
  ],
  'H.265 in-band sets': [
    (data) => inBand(h265, [...hevc.vps, ...hevc.sps, ...hevc.pps, data]),
    [...hevc.vps, ...hevc.sps, ...hevc.pps],
  ],
  'H.265 open arrays': [h265.withOpenArrays, [box(vector('h265-main.mp4'), 'hvcC')]],
  'H.265 key frame': [h265.startOf, samples(vector('h265-main.mp4')).slice(3, 5)],
  'H.265 canonical form': [(data) => h265.canonicalize(data, 4), samples(vector('h265-main.mp4')).slice(3, 5)],
  'NAL units': [(data) => [...nalUnits(data)].length, samples(vector('h264-baseline.mp4'))],
  'Annex B as lengths': [
    (data) => [...nalUnits(annexBToLengths(Buffer.from(data)))].length,
    [vector('h264-baseline.h264')],
  ],
  'Annex B': [(data) => splitAnnexB(data).map(unescapeNal), [vector('h264-baseline.h264')]],
  'AV1 record': [
    (data) => av1.codecString(av1.parseAv1Config(data)),
    [box(vector('av1-svt.mp4'), 'av1C'), box(vector('av1-aom-444.mp4'), 'av1C')],
  ],
  'AV1 record from a unit': [av1.buildAv1Config, [av1Unit]],
  'AV1 key frame': [av1.isKeyUnit, [av1Unit]],
  'AV1 canonical form': [(data) => bounded(av1.canonicalize(data), data.length + 9), [av1Unit]],
  VP8: [(data) => (vp8.isKey(data) ? vp8.parseKeyFrame(data) : undefined), ivfFrames(vector('vp8.ivf'))],
  VP9: [
    (data) => (vp9.isKey(data) ? vp9.vpcConfigOf(vp9.parseKeyFrame(data), 0) : undefined),
    [...ivfFrames(vector('vp9-profile0.ivf')), ...ivfFrames(vector('vp9-profile3.ivf'))],
  ],
  'VP9 record': [(data) => vp9.codecString(vp9.parseVpcConfig(data)), [box(vector('vp9-profile0.mp4'), 'vpcC')]],
  'AAC config': [
    aac.parseAudioSpecificConfig,
    ['1210', '2b920800', 'eb8a0800', '139056e5a0', '118004c8000000000000'].map((hex) => Buffer.from(hex, 'hex')),
  ],
  ADTS: [(data) => [...adts.adtsFrames(data)].length, [vector('aac-stereo.adts')]],
  'AAC in LATM': [(data) => new LatmReader().element(data, true), [latm]],
  'LATM configuration': [(data) => new LatmReader().configure(data), [muxConfig]],
  'AAC with a program config': [
    (data) => configOfAdts({ ...adtsHeader, channelConfiguration: 0 }, data),
    [Buffer.from('a0800000a000000000', 'hex')],
  ],
  'AC-3': [
    parseAc3Frame,
    ['0b773e71104043e1', '0b7728191e40ebf8', '0b7700bf3287c000'].map((hex) => Buffer.from(hex, 'hex')),
  ],
  'MPEG audio': [parseMpegAudioFrame, ['fffb9064', 'fff39864', 'fffde404'].map((hex) => Buffer.from(hex, 'hex'))],
  'Opus packet': [opus.packetSamples, samples(vector('opus-stereo.mp4'))],
  OpusHead: [(data) => opus.buildOpusConfig(opus.parseOpusHead(data)), [vector('opus-51.ogg').subarray(28, 55)]],
  'Opus record': [(data) => opus.buildOpusHead(opus.parseOpusConfig(data)), [box(vector('opus-51.mp4'), 'dOps')]],
};

function bounded(data: Buffer, limit: number): Buffer {
  if (data.length > limit) throw new Error(`${data.length} bytes came out, ${limit} were expected at most`);
  return data;
}

/** Throws whatever is neither an answer nor a BitstreamError. */
function feed(parse: (data: Buffer) => unknown, data: Buffer): void {
  try {
    parse(data);
  } catch (error) {
    if (!(error instanceof BitstreamError)) throw new Error(`for ${data.toString('hex')}`, { cause: error });
  }
}

const ROUNDS = 2000;

for (const [name, [parse, valid]] of Object.entries(parsers)) {
  test(`${name}: valid input passes, cut, spoilt and random input is an answer or a BitstreamError`, (t) => {
    const random = seeded(20_240_601);
    const upTo = (limit: number) => Math.floor(random() * limit);
    for (const data of valid) t.notThrows(() => parse(data));
    for (const data of valid) {
      const step = Math.max(1, data.length >> 9);
      t.notThrows(() => {
        for (let size = 0; size < data.length; size += step) feed(parse, data.subarray(0, size));
      });
    }
    for (let round = 0; round < ROUNDS; round++) {
      const spoilt = Buffer.from(valid[upTo(valid.length)] as Buffer);
      for (let changes = 1 + upTo(4); changes > 0; changes--) spoilt[upTo(Math.min(spoilt.length, 256))] = upTo(256);
      const noise = Buffer.from(Array.from({ length: upTo(200) }, () => upTo(256)));
      const start = valid[0] as Buffer;
      const uniform = Buffer.alloc(upTo(4096), round % 3 === 0 ? 0 : upTo(256));
      t.notThrows(() => {
        feed(parse, spoilt);
        feed(parse, noise);
        feed(parse, Buffer.concat([start.subarray(0, Math.min(4, start.length)), noise]));
        feed(parse, uniform);
      });
    }
  });
}
