import test from 'ava';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import * as h264 from '../../../src/codecs/h264.ts';
import * as h265 from '../../../src/codecs/h265.ts';
import { parsePps as parsePps264 } from '../../../src/codecs/h264-pps.ts';
import * as slices264 from '../../../src/codecs/h264-slice.ts';
import { parsePps as parsePps265 } from '../../../src/codecs/h265-pps.ts';
import * as slices265 from '../../../src/codecs/h265-slice.ts';
import { nalUnits } from '../../../src/codecs/nal.ts';
import { box, samples, seeded, vector } from './vectors.ts';

/** Type, frame_num, idr_pic_id and pic_order_cnt_lsb of each picture, as ffmpeg's trace_headers reads them. */
const H264_PICTURES: Record<string, readonly (readonly [number, number, number | undefined, number])[]> = {
  'high-bframes': [
    [2, 0, 0, 0],
    [0, 1, undefined, 6],
    [1, 2, undefined, 2],
    [1, 3, undefined, 4],
    [0, 3, undefined, 12],
    [1, 4, undefined, 8],
    [1, 5, undefined, 10],
    [0, 5, undefined, 14],
  ],
  'interlaced-hrd': [
    [2, 0, 0, 1],
    [0, 1, undefined, 3],
    [0, 2, undefined, 5],
    [0, 3, undefined, 7],
  ],
};
/** How many pictures each has. */
const H265_PICTURES: Record<string, number> = { main: 8, '422-hrd': 3 };

function slices(file: string, isSlice: (nal: Buffer) => boolean): Buffer[] {
  return samples(vector(file)).flatMap((unit) => [...nalUnits(unit)].filter(isSlice));
}

const isH264Slice = (nal: Buffer) => [h264.NAL.slice, h264.NAL.idr].some((type) => type === h264.nalType(nal));
const isH265Slice = (nal: Buffer) => h265.nalType(nal) <= h265.NAL.lastVcl;

for (const [name, pictures] of Object.entries(H264_PICTURES)) {
  test(`slice headers of H.264: ${name}`, (t) => {
    const config = h264.parseAvcConfig(box(vector(`h264-${name}.mp4`), 'avcC'));
    const sps = h264.parseSps(config.sps[0] as Buffer);
    t.deepEqual(parsePps264(config.pps[0] as Buffer), { id: 0, sps: sps.id });
    const heads = slices(`h264-${name}.mp4`, isH264Slice).map((nal) => slices264.parseSliceHead(nal, sps));
    t.deepEqual(
      heads,
      pictures.map(([type, frameNum, idrId, pocLsb]) => {
        return { firstMb: 0, type, pps: 0, frameNum, field: 'frame', idrId, pocLsb };
      }),
    );
  });
}

for (const [name, pictures] of Object.entries(H265_PICTURES)) {
  test(`slice headers of H.265: ${name}`, (t) => {
    const config = h265.parseHevcConfig(box(vector(`h265-${name}.mp4`), 'hvcC'));
    const sps = h265.parseSps(config.sps[0] as Buffer);
    const pps = parsePps265(config.pps[0] as Buffer);
    t.deepEqual(pps, { id: 0, sps: sps.id });
    const nals = slices(`h265-${name}.mp4`, isH265Slice);
    t.is(nals.length, pictures);
    for (const nal of nals) t.deepEqual(slices265.parseSliceStart(nal), { isFirst: true, pps: 0 });
  });
}

test('a field, the largest ids, a colour of its own, and numbers behind emulation prevention', (t) => {
  const sps = {
    ...h264.parseSps(h264.parseAvcConfig(box(vector('h264-interlaced-hrd.mp4'), 'avcC')).sps[0] as Buffer),
    separatePlanes: true,
    frameNumBits: 16,
    pocLsbBits: 16,
  };
  const bits = new BitWriter().ue(1000).ue(9).ue(255).write(2, 2).write(0, 16);
  const rest = bits.flag(true).flag(true).ue(65_535).write(513, 16).flag(true).finish();
  const nal = Buffer.from(`65${rest.toString('hex').replaceAll(/(0000)(0[0-3])/g, '$103$2')}`, 'hex');
  t.deepEqual(slices264.parseSliceStart(nal), { firstMb: 1000, type: slices264.SLICE.si, pps: 255 });
  t.like(slices264.parseSliceHead(nal, sps), { frameNum: 0, field: 'bottom', idrId: 65_535, pocLsb: 513 });
  t.is(slices264.parseSliceHead(nal, { ...sps, pocLsbBits: 0 }).pocLsb, undefined);
});

test('the largest ids of H.265, and a slice that is not the first of its picture', (t) => {
  const bytes = new BitWriter().ue(63).ue(15).flag(true).finish();
  const pps = parsePps265(Buffer.concat([Buffer.of(0x44, 1), bytes]));
  t.deepEqual(pps, { id: 63, sps: 15 });
  const picture = new BitWriter().flag(true).ue(63);
  const nal = Buffer.concat([Buffer.of(0x02, 1), picture.flag(true).finish()]);
  t.deepEqual(slices265.parseSliceStart(nal), { isFirst: true, pps: 63 });
  const later = Buffer.concat([Buffer.of(0x02, 1), new BitWriter().flag(false).ue(3).finish()]);
  t.deepEqual(slices265.parseSliceStart(later), { isFirst: false, pps: 3 });
});

test('slice headers of other NAL units, truncated or random, are unknown', (t) => {
  const avc = h264.parseAvcConfig(box(vector('h264-high-bframes.mp4'), 'avcC'));
  const avcSps = h264.parseSps(avc.sps[0] as Buffer);
  const hevc = h265.parseHevcConfig(box(vector('h265-main.mp4'), 'hvcC'));
  const reads: ((nal: Buffer) => unknown)[] = [
    slices264.parseSliceStart,
    (nal) => slices264.parseSliceHead(nal, avcSps),
    parsePps264,
    slices265.parseSliceStart,
    parsePps265,
  ];
  const random = seeded(6);
  const inputs = [avc.sps[0] as Buffer, hevc.vps[0] as Buffer];
  for (let size = 0; size <= 3; size++) inputs.push(Buffer.alloc(size, 0x01), Buffer.alloc(size, 0x02));
  for (const read of reads) {
    for (const nal of inputs) t.throws(() => read(nal), { instanceOf: BitstreamError });
    for (let i = 0; i < 500; i++) {
      const nal = Buffer.from(Array.from({ length: i % 40 }, () => Math.floor(random() * 256)));
      try {
        read(nal);
      } catch (error) {
        t.true(error instanceof BitstreamError);
      }
    }
  }
});
