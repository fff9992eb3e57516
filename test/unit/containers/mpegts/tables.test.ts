import test from 'ava';
import { sectionCrc } from '../../../../src/containers/mpegts/crc.ts';
import { readDescriptors, writeDescriptors } from '../../../../src/containers/mpegts/descriptors.ts';
import { readPat, readPmt } from '../../../../src/containers/mpegts/tables.ts';
import { pat, pmt, section } from '../../../support/mpegts/ts-build.ts';

/** As ffmpeg writes them. */
const PAT = Buffer.from('00b00d0001c100000001f0002ab104b2', 'hex');
const PMT = Buffer.from('02b0170001c10000e100f0001be100f0000fe101f0002f44b99b', 'hex');

test('tables that ffmpeg writes', (t) => {
  t.is(sectionCrc(PAT), 0);
  t.is(sectionCrc(PMT), 0);
  t.deepEqual(readPat(PAT), [{ number: 1, pid: 0x1000 }]);
  t.deepEqual(readPmt(PMT), {
    program: 1,
    pcrPid: 256,
    descriptors: [],
    streams: [
      { pid: 256, type: 0x1b, descriptors: [] },
      { pid: 257, type: 0x0f, descriptors: [] },
    ],
  });
  t.deepEqual(pat({ 1: 0x1000 }), PAT);
  t.deepEqual(
    pmt(
      1,
      [
        { pid: 256, type: 0x1b },
        { pid: 257, type: 0x0f },
      ],
      { pcrPid: 256 },
    ),
    PMT,
  );
});

test('the network is no program; tables of other kinds and of later are none', (t) => {
  t.deepEqual(readPat(pat({ 0: 16, 5: 32, 7: 33 })), [
    { number: 5, pid: 32 },
    { number: 7, pid: 33 },
  ]);
  t.is(readPat(PMT), undefined);
  t.is(readPmt(PAT), undefined);
  t.is(readPat(section(0, 1, Buffer.alloc(4), { current: false })), undefined);
  t.is(readPat(Buffer.of(0, 0, 0)), undefined);
});

test('descriptors both ways, and loops that are cut off', (t) => {
  const descriptors = [
    { tag: 5, data: Buffer.from('Opus') },
    { tag: 0x7f, data: Buffer.of(0x80, 2) },
  ];
  const loop = writeDescriptors(descriptors);
  t.is(loop.toString('hex'), '05044f7075737f028002');
  t.deepEqual(readDescriptors(loop), descriptors);
  t.deepEqual(readDescriptors(loop.subarray(0, -1)), descriptors.slice(0, 1));
  const cut = section(2, 1, Buffer.from('e100f0101be100f000', 'hex'));
  t.is(readPmt(cut), undefined);
});
