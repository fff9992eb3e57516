import test from 'ava';
import { writeDescriptors } from '../../../../src/containers/mpegts/descriptors.ts';
import { elementaryStreams } from '../../../../src/containers/mpegts/elementary.ts';
import { readPmt, type ProgramMap } from '../../../../src/containers/mpegts/tables.ts';
import { pmt } from '../../../support/mpegts/ts-build.ts';

interface Told {
  readonly tag: number;
  readonly data: Buffer;
}

function read(streams: readonly (readonly [type: number, ...descriptors: Told[]])[], ofProgram: readonly Told[] = []) {
  const section = pmt(
    1,
    streams.map(([type, ...descriptors], i) => ({ pid: 256 + i, type, descriptors: writeDescriptors(descriptors) })),
    {
      descriptors: writeDescriptors(ofProgram),
    },
  );
  return elementaryStreams(readPmt(section) as ProgramMap);
}

const registration = (format: string): Told => ({ tag: 5, data: Buffer.from(format, 'latin1') });
const language = (code: string): Told => ({ tag: 10, data: Buffer.from(`${code}\0`, 'latin1') });
/** As ffmpeg and Apple's tools write it. */
const ID3: Told = {
  tag: 0x26,
  data: Buffer.concat([
    Buffer.of(0xff, 0xff),
    Buffer.from('ID3 '),
    Buffer.of(0xff),
    Buffer.from('ID3 '),
    Buffer.of(0, 0x0f),
  ]),
};

test('stream types that say all', (t) => {
  const told = read([[0x1b], [0x24], [0x0f], [0x11], [3], [4], [0x81], [0x87], [0x86], [0x15, ID3]]);
  t.deepEqual(
    told.map((stream) => 'form' in stream && [stream.kind, stream.form]),
    [
      ['video', 'H264'],
      ['video', 'H265'],
      ['audio', 'ADTS'],
      ['audio', 'LATM'],
      ['audio', 'MPEG audio'],
      ['audio', 'MPEG audio'],
      ['audio', 'AC-3'],
      ['audio', 'AC-3'],
      ['data', 'SCTE-35'],
      ['data', 'ID3'],
    ],
  );
});

test('KLV by a registration, or by a metadata descriptor that names it', (t) => {
  const metadata: Told = { tag: 0x26, data: Buffer.from('0100ff4b4c5641000f', 'hex') };
  const told = read([
    [6, registration('KLVA')],
    [0x15, registration('KLVA')],
    [0x15, metadata],
    [0x15, registration('XYZ ')],
  ]);
  t.deepEqual(
    told.map((stream) => ('form' in stream ? [stream.kind, stream.form] : stream.unsupported)),
    [['data', 'KLV'], ['data', 'KLV'], ['data', 'KLV'], 'XYZ  (stream type 0x15)'],
  );
});

test('private streams by their descriptors', (t) => {
  const told = read([
    [6, registration('Opus'), { tag: 0x7f, data: Buffer.of(0x80, 2) }],
    [6, { tag: 0x6a, data: Buffer.of(0) }],
    [6, language('deu'), { tag: 0x7a, data: Buffer.of(0) }],
    [6, registration('AC-3')],
    [6, registration('HEVC')],
  ]);
  t.deepEqual(
    told.map((stream) => 'form' in stream && stream.form),
    ['Opus', 'AC-3', 'AC-3', 'AC-3', 'H265'],
  );
  t.like(told[2], { language: 'deu' });
  t.is('header' in told[0]! && told[0].header?.toString('latin1', 0, 8), 'OpusHead');
});

test('unsupported elementary streams are named', (t) => {
  const told = read([
    [2],
    [1],
    [6],
    [6, { tag: 0x59, data: Buffer.alloc(8) }],
    [6, registration('AV01')],
    [0x15],
    [0x1c],
    [0x06, registration('\0\0\0\0')],
  ]);
  t.deepEqual(
    told.map((stream) => 'unsupported' in stream && stream.unsupported),
    [
      'MPEG-2 video',
      'MPEG-1 video',
      'stream type 0x06',
      'DVB subtitles (stream type 0x06)',
      'AV01 (stream type 0x06)',
      'stream type 0x15',
      'stream type 0x1c',
      'stream type 0x06',
    ],
  );
});

test('stream types of discs mean something else', (t) => {
  const told = read([[0x1b], [0x81], [0x84], [0x86]], [registration('HDMV')]);
  t.deepEqual(
    told.map((stream) => ('form' in stream ? stream.form : stream.unsupported)),
    ['H264', 'AC-3', 'AC-3', 'stream type 0x86'],
  );
});

test('languages that are none', (t) => {
  const told = read([
    [0x0f, language('ENG')],
    [0x0f, language('und')],
    [0x0f, language('\0\0\0')],
    [0x0f, { tag: 10, data: Buffer.of() }],
  ]);
  t.deepEqual(
    told.map((stream) => 'form' in stream && stream.language),
    ['eng', undefined, undefined, undefined],
  );
});
