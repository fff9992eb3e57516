import test from 'ava';
import type { CodecEntry } from '../../../src/transcode/codecs.ts';
import { joinInventories } from '../../../src/transcode/joined-codecs.ts';

function entry(name: string, active: [decoder: number, encoder: number], more: Partial<CodecEntry> = {}): CodecEntry {
  const [module = '', id] = name.split(':');
  const [decoder, encoder] = active;
  return {
    busId: '-',
    displayName: module,
    id: Number(id),
    isDecoder: false,
    isDefault: false,
    isEncoder: true,
    isHwAccel: false,
    mediaType: 'Video',
    metrics: { active: { decoder, encoder } },
    module,
    name,
    supportedCodecs: ['H264'],
    ...more,
  };
}

const device = (name: string, busId: string, active: [number, number]): CodecEntry =>
  entry(name, active, { busId, isHwAccel: true });

test('software is one entry; each device is one, under an id that no other has, whichever node joins them', (t) => {
  const a = [
    entry('default:0', [1, 0]),
    entry('default:0', [2, 0], { mediaType: 'Audio' }),
    entry('x264:0', [0, 3]),
    device('nv:0', '0000:01:00.0', [0, 1]),
    device('nv:1', '0000:02:00.0', [0, 2]),
  ];
  const b = [
    entry('default:0', [10, 0], { supportedCodecs: ['H264', 'H265'], isDefault: true }),
    entry('libaom:0', [0, 0]),
    device('nv:0', '0000:01:00.0', [0, 4]),
    device('xma:0', '0000:05:00.0', [0, 8]),
  ];
  const joined = joinInventories(
    new Map([
      ['b', b],
      ['a', a],
    ]),
  );
  t.deepEqual(
    joined,
    joinInventories(
      new Map([
        ['a', a],
        ['b', b],
      ]),
    ),
  );
  t.deepEqual(joined, [
    entry('default:0', [11, 0], { supportedCodecs: ['H264', 'H265'], isDefault: true }),
    entry('default:0', [2, 0], { mediaType: 'Audio' }),
    entry('x264:0', [0, 3]),
    entry('libaom:0', [0, 0]),
    device('nv:0', '0000:01:00.0', [0, 1]),
    device('nv:1', '0000:02:00.0', [0, 2]),
    { ...device('nv:2', '0000:01:00.0', [0, 4]), displayName: 'nv' },
    device('xma:0', '0000:05:00.0', [0, 8]),
  ]);
  t.deepEqual(joinInventories(new Map([['a', a]])), a);
});
