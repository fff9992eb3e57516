import test from 'ava';
import { pat, pes, pmt, TsWriter, type PmtStream } from '../../../support/mpegts/ts-build.ts';
import { openDemuxer } from '../../../support/mpegts/ts-media.ts';

const AAC: PmtStream = { pid: 257, type: 0x0f };
const H264: PmtStream = { pid: 256, type: 0x1b };

/** A sender of one program or several, and what is understood of it. */
function setUp() {
  const { demuxer, demuxed } = openDemuxer();
  const writers = new Map<number, TsWriter>();
  const on = (pid: number) => {
    const writer = writers.get(pid) ?? new TsWriter(pid);
    writers.set(pid, writer);
    return writer;
  };
  const send = (packets: readonly Buffer[]) => packets.forEach((packet) => demuxer.push(packet));
  const programs = (pmts: Readonly<Record<number, number>>, version = 0) => send(on(0).section(pat(pmts, version)));
  const program = (number: number, pid: number, streams: readonly PmtStream[], version = 0, pcrPid = 0x1fff) =>
    send(on(pid).section(pmt(number, streams, { version, pcrPid })));
  const payload = (pid: number, pts: number, bytes = 100) =>
    send(on(pid).unit(pes(Buffer.alloc(bytes, pts & 0xff), { pts })));
  const streams = () => demuxed.changes.map(({ streams: list }) => list.map(({ pid }) => pid));
  const times = () => demuxed.pes.map(({ pid, header }) => [pid, header.pts]);
  // whatever comes first: it is known where packets begin
  send(Array.from({ length: 3 }, () => on(0x1fff).packet(Buffer.alloc(184))));
  return { demuxer, demuxed, on, send, programs, program, payload, streams, times };
}

test('the streams of the program, and what is in them', (t) => {
  const { demuxed, programs, program, payload, streams, times } = setUp();
  payload(256, 1);
  programs({ 1: 32 });
  payload(256, 2);
  program(1, 32, [H264, AAC]);
  payload(256, 3);
  payload(257, 4, 1000);
  payload(300, 5);
  t.deepEqual(streams(), [[256, 257]]);
  t.deepEqual(times(), [
    [256, 3],
    [257, 4],
  ]);
  t.deepEqual(
    demuxed.faults.filter((fault) => !fault.includes('audio')),
    [],
  );
});

test('the first of several programs with audio or video is taken, in whichever order their tables come', (t) => {
  const { programs, program, streams, payload, times } = setUp();
  programs({ 1: 32, 2: 33, 3: 34 });
  program(3, 34, [{ pid: 500, type: 0x1b }]);
  program(1, 32, [{ pid: 300, type: 0x86 }]);
  t.deepEqual(streams(), []);
  program(2, 33, [{ pid: 400, type: 0x1b }]);
  t.deepEqual(streams(), [[400]]);
  program(1, 32, [{ pid: 300, type: 0x86 }, H264], 1);
  program(3, 34, [{ pid: 501, type: 0x1b }], 1);
  payload(400, 1);
  payload(256, 2);
  t.deepEqual(streams(), [[400]]);
  t.deepEqual(times(), [[400, 1]]);
});

test('a program whose table never comes is not waited for', (t) => {
  const { programs, program, streams } = setUp();
  programs({ 1: 32, 2: 33 });
  program(2, 33, [AAC]);
  for (let i = 0; i < 3; i++) programs({ 1: 32, 2: 33 });
  t.deepEqual(streams(), []);
  programs({ 1: 32, 2: 33 });
  t.deepEqual(streams(), [[257]]);
});

test('a table that changes: streams come, go, and are something else; those that stay go on', (t) => {
  const { demuxed, programs, program, payload, streams, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264, AAC]);
  payload(256, 1);
  program(1, 32, [H264, AAC]);
  program(1, 32, [H264, AAC], 1);
  t.is(demuxed.changes.length, 1);
  program(1, 32, [H264, { pid: 257, type: 0x81 }, { pid: 258, type: 0x0f }], 2);
  payload(258, 2);
  program(1, 32, [H264], 3);
  payload(257, 3);
  payload(256, 4);
  t.deepEqual(streams(), [[256, 257], [256, 257, 258], [256]]);
  t.is(demuxed.changes[0]?.streams[0], demuxed.changes[2]?.streams[0]);
  t.not(demuxed.changes[0]?.streams[1], demuxed.changes[1]?.streams[1]);
  t.deepEqual(times(), [
    [256, 1],
    [258, 2],
    [256, 4],
  ]);
});

test('a program that is gone makes room for another', (t) => {
  const { programs, program, streams } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264]);
  programs({ 2: 32 }, 1);
  program(2, 32, [AAC]);
  t.deepEqual(streams(), [[256], [257]]);
});

test('tables that name PIDs twice, or those of tables', (t) => {
  const { programs, program, streams } = setUp();
  programs({ 1: 32, 2: 0 });
  program(1, 32, [
    { pid: 32, type: 0x1b },
    { pid: 0, type: 0x1b },
    { pid: 0x1fff, type: 0x1b },
    H264,
    { pid: 256, type: 0x0f },
  ]);
  t.deepEqual(streams(), [[256]]);
});

test('a table in several packets, and one with a wrong checksum', (t) => {
  const { demuxed, on, send, programs, streams } = setUp();
  programs({ 1: 32 });
  const many = Array.from({ length: 60 }, (_, i) => ({ pid: 256 + i, type: 0x0f }));
  const damaged = pmt(1, many);
  damaged[100]! ^= 1;
  send(on(32).section(damaged));
  t.deepEqual(demuxed.faults, ['a section with a wrong checksum']);
  send(on(32).section(pmt(1, many)));
  t.is(streams()[0]?.length, 40);
});

test('a packet that is lost takes what it belonged to with it', (t) => {
  const { demuxed, on, send, programs, program, payload, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264, AAC]);
  payload(256, 1);
  const packets = on(256).unit(pes(Buffer.alloc(1000), { pts: 2 }));
  send(packets.filter((_, i) => i !== 2));
  payload(256, 3);
  payload(257, 4);
  t.deepEqual(times(), [
    [256, 1],
    [256, 3],
    [257, 4],
  ]);
  t.deepEqual(demuxed.lost, [256]);
  t.deepEqual(
    demuxed.faults.filter((fault) => fault.startsWith('transport')),
    ['transport packets were lost'],
  );
});

test('a packet that is marked as damaged is one that is lost', (t) => {
  const { demuxed, on, send, programs, program, payload, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264]);
  const packets = on(256).unit(pes(Buffer.alloc(1000), { pts: 2 }));
  packets[2]![1]! |= 0x80;
  send(packets);
  payload(256, 3);
  t.deepEqual(times(), [[256, 3]]);
  t.deepEqual(demuxed.faults, ['transport packets marked as damaged', 'transport packets were lost']);
});

test('each MPEG-TS packet may come twice, not three times', (t) => {
  const { demuxed, on, send, programs, program, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264]);
  send(
    on(256)
      .unit(pes(Buffer.alloc(1000, 7), { pts: 1 }))
      .flatMap((packet) => [packet, packet]),
  );
  t.deepEqual(times(), [[256, 1]]);
  t.deepEqual(demuxed.pes[0]?.payload, Buffer.alloc(1000, 7));
  t.deepEqual(demuxed.lost, []);
  send(
    on(256)
      .unit(pes(Buffer.alloc(1000, 7), { pts: 2 }))
      .flatMap((packet) => [packet, packet, packet]),
  );
  t.true(demuxed.lost.length > 0);
});

test('fifteen packets that are lost are not taken for a copy', (t) => {
  const { demuxed, on, send, programs, program, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264]);
  const packets = on(256).unit(pes(Buffer.from(Array.from({ length: 5000 }, (_, i) => i & 0xff)), { pts: 2 }));
  send(packets.filter((_, i) => i < 3 || i >= 18));
  t.deepEqual(times(), []);
  t.deepEqual(demuxed.lost, [256]);
});

test('continuity counters jump where that is signalled, and stay the same without payload', (t) => {
  const { demuxed, on, send, programs, program, payload, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264]);
  payload(256, 1);
  for (let i = 0; i < 3; i++) send([on(256).packet(undefined)]);
  payload(256, 2);
  on(256).skip();
  send([on(256).packet(pes(Buffer.alloc(50), { pts: 3 }), { starts: true, adaptation: Buffer.of(0x80) })]);
  on(256).skip();
  send([on(256).packet(undefined, { adaptation: Buffer.of(0x80) })]);
  payload(256, 4);
  t.deepEqual(times(), [
    [256, 1],
    [256, 2],
    [256, 3],
    [256, 4],
  ]);
  t.deepEqual(demuxed.lost, []);
});

test('scrambled MPEG-TS packets are left out', (t) => {
  const { demuxed, on, send, programs, program, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264]);
  send([on(256).packet(pes(Buffer.alloc(50), { pts: 3 }), { starts: true, scrambled: true })]);
  t.deepEqual(times(), []);
  t.deepEqual(demuxed.faults, ['scrambled transport packets']);
});

test('the clock of the program, sections of splices, and a loss that is known', (t) => {
  const { demuxer, demuxed, on, send, programs, program, payload, times } = setUp();
  programs({ 1: 32 });
  program(1, 32, [H264, { pid: 258, type: 0x86 }], 0, 400);
  const clock = Buffer.from('10ffffffff8000', 'hex');
  send([on(400).packet(undefined, { adaptation: clock })]);
  t.deepEqual(demuxed.clocks, [2 ** 33 - 1]);
  const splice = Buffer.from('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=', 'base64');
  send(on(258).section(splice));
  t.deepEqual(demuxed.sections, [{ pid: 258, section: splice }]);
  const packets = on(256).unit(pes(Buffer.alloc(1000), { pts: 2 }));
  send(packets.slice(0, 3));
  demuxer.lost();
  send(packets.slice(3));
  payload(256, 3);
  t.deepEqual(times(), [[256, 3]]);
  t.deepEqual(demuxed.lost, [256, 258]);
});
