import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { escapedLength, nalUnits, unescapeNal } from '../../../src/codecs/nal.ts';
import { NAL_SYNTAX, type NalSyntax, type SliceHeaders } from '../../../src/packaging/drm/slice-headers.ts';
import { box, samples, seeded, vector } from './vectors.ts';

/** Bytes of the headers of the first slices, rounded up, by ffmpeg 5.1 (`-bsf:v trace_headers`). */
const HEADERS: Readonly<Record<string, readonly number[]>> = {
  'h264-baseline': [4, 4, 4],
  'h264-high-bframes': [5, 6, 6, 6, 11, 7],
  'h264-high10-422': [5, 5, 5],
  'h264-high444': [5, 5],
  'h264-interlaced-hrd': [6, 6, 6, 6],
  'h264-open-gop': [5, 5, 5, 5, 5, 4],
  'h265-422-hrd': [4, 8, 7],
  'h265-444': [5, 9],
  'h265-main': [25, 23, 18, 16, 28, 23],
  'h265-main10-hdr': [5, 9],
};

interface Stream {
  readonly syntax: NalSyntax;
  readonly sets: readonly Buffer[];
  readonly slices: readonly Buffer[];
}

function stream(name: string): Stream {
  const [codec = ''] = name.split('-');
  const syntax = NAL_SYNTAX[codec.toUpperCase()] as NalSyntax;
  const file = vector(`${name}.mp4`);
  const sets = syntax.parameterSetsOf(box(file, codec === 'h264' ? 'avcC' : 'hvcC'));
  const slices = samples(file).flatMap((unit) => [...nalUnits(unit)].filter((nal) => syntax.kindOf(nal) === 'slice'));
  return { syntax, sets, slices };
}

function headersOf(syntax: NalSyntax, sets: readonly Buffer[]): SliceHeaders {
  const headers = syntax.headers();
  for (const set of sets) headers.add(set);
  return headers;
}

for (const [name, lengths] of Object.entries(HEADERS)) {
  test(`lengths of slice headers: ${name}`, (t) => {
    const { syntax, sets, slices } = stream(name);
    const headers = headersOf(syntax, sets);
    t.deepEqual(
      slices.slice(0, lengths.length).map((slice) => headers.bytes(slice)),
      lengths,
    );
  });

  test(`damaged slices and parameter sets: ${name}`, (t) => {
    const { syntax, sets, slices } = stream(name);
    const random = seeded(35);
    const damaged = (nal: Buffer): Buffer => {
      const copy = Buffer.from(nal.subarray(0, 1 + Math.floor(random() * Math.min(nal.length, 60))));
      for (let i = 0; i < 3; i++) copy[1 + Math.floor(random() * copy.length)] = Math.floor(random() * 256);
      return copy;
    };
    for (let round = 0; round < 300; round++) {
      const [slice] = slices as [Buffer];
      try {
        const nal = round % 2 === 0 ? damaged(slice) : slice;
        const length = headersOf(syntax, round % 3 === 0 ? sets.map(damaged) : sets).bytes(nal);
        t.true(length > 0 && length <= nal.length);
      } catch (error) {
        if (!(error instanceof BitstreamError)) throw error;
      }
    }
  });
}

test('bytes with emulation prevention', (t) => {
  const nal = Buffer.from('65000003010000030000030102', 'hex');
  for (let bytes = 0; bytes <= unescapeNal(nal).length; bytes++)
    t.is(unescapeNal(nal.subarray(0, escapedLength(nal, bytes))).length >= bytes, true);
  t.is(escapedLength(nal, 3), 3);
  t.is(escapedLength(nal, 4), 5);
  t.is(escapedLength(nal, 99), nal.length);
});
