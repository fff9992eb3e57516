import test from 'ava';
import { spliceInfo } from '../../../../src/containers/mpegts/splice-info.ts';
import { segmentation, spliceInsert, spliceSection, timeSignal } from '../../../support/media/splice.ts';

const base64 = (text: string) => Buffer.from(text, 'base64');
const INSERT = base64('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=');
const SIGNAL = base64('/DA0AAAAAAAA///wBQb+cr0AUAAeAhxDVUVJSAAAjn/PAAGlmbAICAAAAAAsoKGKNAIAmsnRfg==');

test('splice information sections of the examples in SCTE 35 (14.1, 14.2)', (t) => {
  t.deepEqual(spliceInfo(INSERT), {
    kind: 'out',
    eventId: 0x4800008f,
    duration: 0x0052ccf5 / 90_000,
    autoReturn: true,
  });
  t.deepEqual(spliceInfo(SIGNAL), {
    kind: 'out',
    eventId: 0x4800008e,
    duration: 0x01a599b0 / 90_000,
    autoReturn: false,
  });
});

test('inserts of a program and of components', (t) => {
  t.like(spliceInfo(spliceInsert({ eventId: 7, out: true })), { kind: 'out', eventId: 7, duration: undefined });
  t.like(spliceInfo(spliceInsert({ eventId: 7, out: true, duration: 30, components: 3 })), { duration: 30 });
  t.like(spliceInfo(spliceInsert({ eventId: 7, out: false })), { kind: 'in', eventId: 7 });
});

test('time signals are read by their descriptors', (t) => {
  t.like(spliceInfo(timeSignal(segmentation(9, 0x30, 15))), { kind: 'out', eventId: 9, duration: 15 });
  t.like(spliceInfo(timeSignal(segmentation(9, 0x31))), { kind: 'in', eventId: 9 });
  t.like(spliceInfo(timeSignal(segmentation(8, 0x10), segmentation(9, 0x23))), { kind: 'in', eventId: 9 });
  t.like(spliceInfo(timeSignal(segmentation(8, 0x10))), { kind: 'command', eventId: 8 });
  t.like(spliceInfo(timeSignal()), { kind: 'command', eventId: undefined });
});

test('splice information that has no content, or cannot be read, is none', (t) => {
  t.is(spliceInfo(spliceSection(0, Buffer.alloc(0))), undefined);
  t.is(spliceInfo(spliceSection(7, Buffer.alloc(0))), undefined);
  t.like(spliceInfo(spliceSection(255, Buffer.from('CUEI'))), { kind: 'command', eventId: undefined });
  const encrypted = Buffer.from(INSERT);
  encrypted[4] = 0x80;
  t.is(spliceInfo(encrypted), undefined);
});

test('truncated and mutated sections do no harm', (t) => {
  for (const section of [INSERT, SIGNAL, timeSignal(segmentation(1, 0x22, 5), segmentation(2, 0x23))]) {
    for (let length = 0; length < section.length; length++) spliceInfo(section.subarray(0, length));
    for (let at = 0; at < section.length; at++)
      for (const value of [0, 0x7f, 0xff]) {
        const changed = Buffer.from(section);
        changed[at] = value;
        t.notThrows(() => spliceInfo(changed));
      }
  }
});
