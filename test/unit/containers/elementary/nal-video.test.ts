import test, { type ExecutionContext } from 'ava';
import { buildHevcConfig } from '../../../../src/codecs/h265-config.ts';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import { BitstreamError } from '../../../../src/codecs/bits.ts';
import * as h264 from '../../../../src/codecs/h264.ts';
import * as h265 from '../../../../src/codecs/h265.ts';
import { joinNals, nalUnits, splitAnnexB } from '../../../../src/codecs/nal.ts';
import { videoState, type VideoState } from '../../../../src/containers/elementary/video.ts';
import { annexB, h264Pps, h264Slice, h264Sps } from '../../../support/media/nal-build.ts';
import { box, samples, vector } from '../../codecs/vectors.ts';

const key = (pps = 0) => h264Slice({ pps, idr: true });
const later = (pps = 0) => h264Slice({ pps, frame: 1, order: 2 });

/** The NAL units of the picture that comes out. */
function picture(state: VideoState, ...nals: Buffer[]): Buffer[] | undefined {
  const frame = state.frame(joinNals(nals));
  return frame && [...nalUnits(frame.data)];
}

function record(state: VideoState): h264.AvcConfig {
  return h264.parseAvcConfig(state.format?.config as Buffer);
}

test('ordinary streams: the record has the sets, the pictures have none', (t) => {
  const state = videoState('H264');
  const [sps, pps] = [h264Sps(), h264Pps()];
  for (let gop = 0; gop < 3; gop++) {
    t.deepEqual(picture(state, sps, pps, key()), [key()]);
    t.deepEqual(picture(state, later()), [later()]);
  }
  t.deepEqual(state.format?.config, buildAvcConfig({ sps: [sps], pps: [pps] }));
  t.is(state.format?.inBandSets, undefined);
});

test('ids that grow: one format, and each key frame brings its sets', (t) => {
  const state = videoState('H264');
  t.deepEqual(picture(state, h264Sps(), h264Pps(), key()), [key()]);
  const { format } = state;
  for (let round = 0; round < 2; round++) {
    for (let id = round === 0 ? 1 : 0; id < 32; id++) {
      const sets = [h264Sps({ id }), h264Pps(id, id)];
      t.deepEqual(picture(state, ...sets, key(id)), [...sets, key(id)], `id ${id}`);
      t.deepEqual(picture(state, later(id)), [later(id)]);
      t.is(state.format?.config, format?.config);
      t.true(state.format?.inBandSets);
    }
  }
});

test('the active SPS gives the format: another id with another size is another format', (t) => {
  const state = videoState('H264');
  picture(state, h264Sps({ profile: 66 }), h264Pps(), key());
  t.like(state.format, { width: 320, height: 192 });
  const big = h264Sps({ id: 1, across: 40, down: 24 });
  // it says nothing until a picture takes it
  t.deepEqual(picture(state, big, h264Pps(1, 1), later()), [later()]);
  t.like(state.format, { width: 320, height: 192 });
  t.deepEqual(picture(state, key(1)), [key(1)]);
  t.like(state.format, { width: 640, height: 384, inBandSets: undefined });
  t.like(record(state), { profile: 77, sps: [big], pps: [h264Pps(1, 1)] });
  t.deepEqual(picture(state, key(0)), [key(0)]);
  t.like(state.format, { width: 320, height: 192 });
  t.like(record(state), { profile: 66, sps: [h264Sps({ profile: 66 })] });
});

test('the active SPS of a record with several is that of the first picture', (t) => {
  const state = videoState('H264');
  const [small, big] = [h264Sps(), h264Sps({ id: 1, across: 40 })];
  state.configure(buildAvcConfig({ sps: [small, big], pps: [h264Pps(), h264Pps(1, 1)] }));
  t.is(state.format?.width, 320);
  t.deepEqual(picture(state, key(1)), [key(1)]);
  t.is(state.format?.width, 640);
  t.deepEqual(record(state).sps, [big]);
});

test('a PPS that comes between pictures, alone or in a record, goes with the next picture', (t) => {
  const state = videoState('H264');
  const sps = h264Sps();
  picture(state, sps, h264Pps(0, 0, 1), key());
  t.deepEqual(picture(state, later()), [later()]);
  const second = h264Pps(0, 0, 2);
  t.is(picture(state, second), undefined);
  t.deepEqual(picture(state, later()), [second, later()]);
  t.deepEqual(picture(state, later()), [later()]);
  const third = h264Pps(0, 0, 3);
  state.configure(buildAvcConfig({ sps: [sps], pps: [third] }));
  t.deepEqual(picture(state, later()), [third, later()]);
  t.deepEqual(picture(state, key()), [sps, third, key()]);
});

test('an SEI among the sets of a byte stream that stands for a record is passed over', (t) => {
  const state = videoState('H264');
  state.configure(annexB([h264Sps(), h264Pps(), Buffer.from('0605010080', 'hex')]));
  t.like(state.format, { config: buildAvcConfig({ sps: [h264Sps()], pps: [h264Pps()] }) });
});

test('units without number behind a start code are refused', (t) => {
  const many = Buffer.alloc(5 * 20_000);
  for (let at = 0; at < many.length; at += 5) many.writeUInt32BE(1, at);
  const broken = joinNals([Buffer.concat([key(), Buffer.of(0, 0, 1, 0x65)])]);
  t.throws(() => videoState('H264').frame(Buffer.concat([broken, many])), { instanceOf: BitstreamError });
  t.throws(() => splitAnnexB(Buffer.concat(Array.from({ length: 20_000 }, () => Buffer.of(0, 0, 1)))), {
    instanceOf: BitstreamError,
  });
});

test('PPS that change: no other format, and the picture brings what it needs', (t) => {
  const state = videoState('H264');
  const sps = h264Sps();
  const [one, two] = [h264Pps(0, 0, 1), h264Pps(0, 0, 2)];
  picture(state, sps, one, key());
  const { config } = state.format ?? {};
  for (let gop = 0; gop < 70; gop++) {
    const pps = gop % 2 === 0 ? two : one;
    t.deepEqual(picture(state, sps, pps, key()), [sps, pps, key()]);
    t.deepEqual(picture(state, later()), [later()]);
  }
  t.is(state.format?.config, config);
  // in the middle of a GOP, and with the next key frame, which does not repeat it
  const third = h264Pps(0, 0, 3);
  t.deepEqual(picture(state, third, later()), [third, later()]);
  t.deepEqual(picture(state, key()), [sps, third, key()]);
  // one more, which the pictures choose from
  const other = h264Pps(9, 0, 4);
  t.deepEqual(picture(state, other, later(9)), [other, later(9)]);
  t.deepEqual(picture(state, key()), [sps, third, other, key()]);
  // of another SPS, which no picture has
  t.deepEqual(picture(state, h264Sps({ id: 7, across: 10 }), h264Pps(3, 7), later()), [later()]);
  t.is(state.format?.config, config);
});

test('a record with other PPS makes no other format either', (t) => {
  const state = videoState('H264');
  const sps = h264Sps();
  const records = [1, 2].map((qp) => buildAvcConfig({ sps: [sps], pps: [h264Pps(0, 0, qp)] })) as [Buffer, Buffer];
  for (const sent of [...records, ...records]) {
    state.configure(sent);
    t.truthy(picture(state, key()));
    t.deepEqual(state.format?.config, records[0]);
  }
  t.deepEqual(picture(state, key()), [sps, h264Pps(0, 0, 2), key()]);
  // another SPS is told at once
  state.configure(buildAvcConfig({ sps: [h264Sps({ across: 30 })], pps: [h264Pps()] }));
  t.like(state.format, { width: 480, inBandSets: undefined });
});

test('sets of H.265 that change: PPS alone make no other format, SPS do', (t) => {
  const one = h265.parseHevcConfig(box(vector('h265-main.mp4'), 'hvcC'));
  const other = h265.parseHevcConfig(box(vector('h265-main10-hdr.mp4'), 'hvcC'));
  const [unit] = samples(vector('h265-main.mp4')) as [Buffer];
  const idr = [...nalUnits(h265.canonicalize(unit, 4).data)];
  const [vps, sps, pps] = [one.vps[0], one.sps[0], one.pps[0]] as [Buffer, Buffer, Buffer];
  const changed = Buffer.from(pps);
  // sign_data_hiding_enabled_flag
  changed[2] = (changed[2] as number) ^ 0x02;
  const state = videoState('H265');
  t.deepEqual(picture(state, vps, sps, pps, ...idr), idr);
  t.deepEqual(state.format?.config, buildHevcConfig({ vps: [vps], sps: [sps], pps: [pps] }));
  t.deepEqual(picture(state, vps, sps, changed, ...idr), [vps, sps, changed, ...idr]);
  t.deepEqual(picture(state, vps, sps, pps, ...idr), [vps, sps, pps, ...idr]);
  t.like(state.format, { width: 1920, inBandSets: true });
  picture(state, ...other.vps, ...other.sps, ...other.pps, ...idr);
  t.like(state.format, { width: 100, inBandSets: undefined });
});

test('a start code inside of a NAL unit ends it', (t) => {
  const [sps, pps, sei] = [h264Sps(), h264Pps(), Buffer.of(6, 5, 1, 0xaa, 0x80)];
  const several = [key(), h264Slice({ idr: true, bytes: 20 })];
  const forms: Record<string, readonly Buffer[]> = {
    'SPS first': [sps, pps, key()],
    'PPS first': [pps, sps, key()],
    'an SEI between': [sps, pps, sei, key()],
    'SEI first': [sei, sps, pps, key()],
    'a delimiter first': [Buffer.of(9, 0xf0), sps, pps, key()],
    'several slices': [sps, pps, ...several],
  };
  const ways: Record<string, (nals: readonly Buffer[]) => Buffer[]> = {
    'codes between': (nals) => [annexB(nals).subarray(4)],
    'codes of 3 bytes': (nals) => [Buffer.concat(nals.flatMap((nal) => [Buffer.of(0, 0, 1), nal])).subarray(3)],
    'a code in front': (nals) => [annexB(nals)],
    'a code in front of each': (nals) => nals.map((nal) => annexB([nal])),
    'zeros behind': (nals) => [Buffer.concat([annexB(nals).subarray(4), Buffer.alloc(3)])],
    'in place of lengths': () => [],
  };
  for (const [form, nals] of Object.entries(forms)) {
    for (const [way, written] of Object.entries(ways)) {
      const state = videoState('H264');
      for (let i = 0; i < 2; i++) {
        const data = written(nals).length > 0 ? joinNals(written(nals)) : annexB(nals);
        const frame = state.frame(data);
        const slices = [...nalUnits(frame?.data ?? Buffer.alloc(0))].filter(
          (nal) => h264.nalType(nal) === h264.NAL.idr,
        );
        t.deepEqual(slices, form === 'several slices' ? several : [key()], `${form}, ${way}`);
        t.true(frame?.key);
        t.like(record(state), { sps: [sps], pps: [pps] }, `${form}, ${way}`);
      }
    }
  }
});

test('start codes inside of H.265, of sets alone, and of a record', (t) => {
  const { vps, sps, pps } = h265.parseHevcConfig(box(vector('h265-main.mp4'), 'hvcC'));
  const [unit] = samples(vector('h265-main.mp4')) as [Buffer];
  // without the zeros that stand behind it
  const idr = splitAnnexB(annexB([...nalUnits(h265.canonicalize(unit, 4).data)]));
  for (const sent of [annexB([...vps, ...sps, ...pps, ...idr]), annexB([...vps, ...sps, ...pps, ...idr]).subarray(4)]) {
    const state = videoState('H265');
    t.deepEqual(picture(state, sent), idr);
    t.is(state.format?.width, 1920);
  }
  const state = videoState('H264');
  t.is(state.frame(joinNals([annexB([h264Sps(), h264Pps()])])), undefined);
  t.is(state.format?.width, 320);
  const wanted = buildAvcConfig({ sps: [h264Sps()], pps: [h264Pps()] });
  const coded = buildAvcConfig({ sps: [h264Sps()], pps: [h264Pps()].map((nal) => annexB([nal])) });
  for (const config of [coded, annexB([h264Sps(), h264Pps()])]) {
    const configured = videoState('H264');
    configured.configure(config);
    t.deepEqual(configured.format?.config, wanted);
  }
});

test('lengths that look like a start code are lengths', (t) => {
  const state = videoState('H264');
  state.configure(buildAvcConfig({ sps: [h264Sps()], pps: [h264Pps()] }));
  for (const bytes of [250, 300, 500]) {
    const slice = h264Slice({ idr: true, bytes });
    t.deepEqual(picture(state, slice), [slice]);
  }
  const short = Buffer.concat([h264Sps(), h264Pps(), key()].flatMap((nal) => [Buffer.of(0, 0, 1), nal]));
  t.deepEqual([...nalUnits(state.frame(short)?.data ?? Buffer.alloc(0))], [key()]);
});

test('slices are looked through for start codes only where a source may have them', (t) => {
  const odd = Buffer.concat([later(), Buffer.of(0, 0, 1), later()]);
  const plain = videoState('H264');
  picture(plain, h264Sps(), h264Pps(), key());
  for (let i = 0; i < 300; i++) picture(plain, later());
  t.deepEqual(picture(plain, odd), [odd]);
  const strange = videoState('H264');
  picture(strange, annexB([h264Sps(), h264Pps(), key()]));
  for (let i = 0; i < 300; i++) picture(strange, later());
  t.deepEqual(picture(strange, odd), [later(), later()]);
});

test('sets one by one, and a picture before they are complete', (t: ExecutionContext) => {
  const state = videoState('H264');
  t.is(state.frame(joinNals([key()])), undefined);
  t.is(state.frame(joinNals([h264Pps()])), undefined);
  t.is(state.frame(joinNals([key()])), undefined);
  t.is(state.format, undefined);
  t.is(state.frame(joinNals([h264Sps()])), undefined);
  t.deepEqual(picture(state, key()), [key()]);
  t.throws(() => state.frame(joinNals([Buffer.of(0x67, 77), key()])), { instanceOf: BitstreamError });
  t.throws(() => videoState('H264').configure(Buffer.concat([Buffer.of(1, 77, 0, 30, 0xff, 0xe1, 0, 15), h264Sps()])), {
    instanceOf: BitstreamError,
  });
});

test('recovery points between IDR pictures are no key frames, and do not say that they are', (t) => {
  const state = videoState('H264');
  state.configure(box(vector('h264-open-gop.mp4'), 'avcC'));
  const starts = samples(vector('h264-open-gop.mp4')).map((data) => {
    const frame = state.frame(data);
    return [frame?.key, frame && h264.startOf(frame.data)];
  });
  t.deepEqual(starts[0], [true, 'idr']);
  for (const start of starts.slice(1)) t.deepEqual(start, [false, undefined]);
});
