import { randomBytes } from 'node:crypto';
import test from 'ava';
import { canonicalize } from '../../../../../src/codecs/av1.ts';
import { joinNals, splitAnnexB } from '../../../../../src/codecs/nal.ts';
import { RtpError } from '../../../../../src/protocols/rtp/receive/error.ts';
import { createDepacketizer } from '../../../../../src/protocols/rtp/receive/create.ts';
import { samples, vector } from '../../../codecs/vectors.ts';
import { packet, sent, take, videoOf } from './support.ts';

const hexNals = (...nals: string[]) => joinNals(nals.map((nal) => Buffer.from(nal.replaceAll(' ', ''), 'hex')));

/** A slice of H.264 that begins its picture. */
function slice(type: number, size: number): Buffer {
  const nal = randomBytes(Math.max(2, size));
  nal[0] = 0x60 | type;
  nal[1] = 0x80 | (nal[1] as number);
  return nal;
}

test('H.264: frames of every size come back as they were, each with its last packet', (t) => {
  const sizes = [2, 500, 1197, 1198, 1199, 1200, 1201, 2400, 50_000];
  const frames = sizes.map((size, i) => ({
    track: videoOf('H264'),
    key: false,
    data: joinNals([slice(6, 9), slice(i === 0 ? 5 : 1, size)]),
  }));
  const { depacketizer, out } = take('H264');
  const perFrame: number[] = [];
  for (const one of sent(frames)) {
    depacketizer.push(one);
    if (one.marker) perFrame.push(out.length);
  }
  t.deepEqual(
    perFrame,
    sizes.map((_, i) => i + 1),
  );
  t.deepEqual(
    out,
    frames.map(({ data }, i) => [data, i * 3000]),
  );
});

test('H.264: single units, STAP-A and FU-A by the byte (RFC 6184 sections 5.6 to 5.8)', (t) => {
  const { depacketizer, out } = take('h264');
  depacketizer.push(packet('78 0003 67aabb 0002 68cc', { timestamp: 5 }));
  depacketizer.push(packet('7c 85 8811', { timestamp: 5 }));
  depacketizer.push(packet('7c 05 22', { timestamp: 5 }));
  depacketizer.push(packet('7c 45 33', { timestamp: 5 }));
  depacketizer.push(packet('06 0102', { timestamp: 5, marker: true }));
  t.deepEqual(out, [[hexNals('67aabb', '68cc', '65 88112233', '060102'), 5]]);
});

test('H.264: units that are malformed or of another mode cost their frame alone', (t) => {
  for (const bad of [
    '79 0000 0002 6580',
    '7a 00',
    '7b 00',
    '7d 85 88',
    '7c 85',
    '78',
    '78 0005 6588',
    '78 00',
    '5e 11',
    '7c 05 22',
  ]) {
    const { depacketizer, out } = take('H264');
    depacketizer.push(packet('65 88', { timestamp: 1, marker: true }));
    depacketizer.push(packet(bad, { timestamp: 2 }));
    depacketizer.push(packet('41 9a', { timestamp: 2, marker: true }));
    depacketizer.push(packet('41 9b', { timestamp: 3, marker: true }));
    t.is(out.length, 3, bad);
    t.deepEqual(
      [out[0], out[2]],
      [
        [hexNals('6588'), 1],
        [hexNals('419b'), 3],
      ],
      bad,
    );
    t.is(typeof out[1], 'string');
  }
});

test('H.264: after a loss what may not be whole is left out', (t) => {
  const cases: readonly (readonly [
    reason: string,
    hex: readonly (readonly [string, number, boolean] | 'lost')[],
    frames: readonly string[],
  ])[] = [
    ['the end of a frame', [['41 80', 1, false], 'lost', ['41 9b', 2, true]], ['419b']],
    [
      'the beginning of a frame',
      [['41 80', 1, true], 'lost', ['41 1b', 2, true], ['41 9c', 3, true]],
      ['4180', '419c'],
    ],
    ['the middle of a frame', [['7c 81 80', 1, false], 'lost', ['7c 41 33', 1, true], ['41 9c', 2, true]], ['419c']],
    ['whole frames', [['41 80', 1, true], 'lost', ['41 9c', 4, true]], ['4180', '419c']],
    [
      'a fragment that begins no frame',
      [['41 80', 1, true], 'lost', ['7c 81 1f', 2, false], ['7c 41 33', 2, true], ['41 9c', 3, true]],
      ['4180', '419c'],
    ],
  ];
  for (const [reason, steps, expected] of cases) {
    const { depacketizer, frames, out } = take('H264');
    for (const step of steps) {
      if (step === 'lost') depacketizer.lose();
      else depacketizer.push(packet(step[0], { timestamp: step[1], marker: step[2] }));
    }
    t.deepEqual(
      frames(),
      expected.map((nal) => hexNals(nal)),
      reason,
    );
    t.true(out.includes('packets were lost'), reason);
  }
});

test('a stream that is joined in the middle of a frame begins with the next', (t) => {
  const { depacketizer, out } = take('H264');
  depacketizer.push(packet('7c 05 22', { timestamp: 1 }));
  depacketizer.push(packet('7c 45 33', { timestamp: 1, marker: true }));
  depacketizer.push(packet('41 9c', { timestamp: 2, marker: true }));
  t.deepEqual(out, [[hexNals('419c'), 2]]);
});

test('a frame without markers ends when the timestamp changes', (t) => {
  const { depacketizer, out } = take('H264');
  depacketizer.push(packet('41 9a', { timestamp: 1 }));
  depacketizer.push(packet('41 1b', { timestamp: 1 }));
  t.deepEqual(out, []);
  depacketizer.push(packet('41 9c', { timestamp: 2 }));
  t.deepEqual(out, [[hexNals('419a', '411b'), 1]]);
});

test('markers on every slice are not believed for longer than one picture', (t) => {
  const { depacketizer, frames } = take('H264');
  for (const timestamp of [1, 2, 3]) {
    depacketizer.push(packet('67 11', { timestamp, marker: true }));
    depacketizer.push(packet('65 9a', { timestamp, marker: true }));
    depacketizer.push(packet('65 1b', { timestamp, marker: true }));
  }
  depacketizer.push(packet('65 9a', { timestamp: 4, marker: true }));
  t.deepEqual(frames().slice(-2), [hexNals('6711', '659a', '651b'), hexNals('6711', '659a', '651b')]);
});

test('H.265: single units, aggregation packets and fragments by the byte (RFC 7798 section 4.4)', (t) => {
  const { depacketizer, out } = take('H265');
  depacketizer.push(packet('6001 0004 4001aabb 0003 4201cc', { timestamp: 9 }));
  depacketizer.push(packet('4e01 0102', { timestamp: 9 }));
  depacketizer.push(packet('6203 93 8811', { timestamp: 9 }));
  depacketizer.push(packet('6203 13 22', { timestamp: 9 }));
  depacketizer.push(packet('6203 53 33', { timestamp: 9, marker: true }));
  t.deepEqual(out, [[hexNals('4001aabb', '4201cc', '4e010102', '2603 88112233'), 9]]);
  for (const bad of ['6401 00', '6201 93', '2601', '6001', '6001 0009 2601', '7e01 11']) {
    out.length = 0;
    depacketizer.push(packet(bad, { timestamp: 10, marker: true }));
    depacketizer.push(packet('0201 80', { timestamp: 11, marker: true }));
    t.deepEqual([typeof out[0], out[1]], ['string', [hexNals('020180'), 11]], bad);
  }
  out.length = 0;
  depacketizer.lose();
  depacketizer.push(packet('0201 01', { timestamp: 12, marker: true }));
  depacketizer.push(packet('0201 80', { timestamp: 13, marker: true }));
  t.deepEqual(out.slice(1), [[hexNals('020180'), 13]]);
});

test('VP8: frames come back; the forms of the descriptor (RFC 7741 section 4.2)', (t) => {
  const frames = [1, 1196, 1197, 30_000].map((size) => ({ track: videoOf('VP8'), key: true, data: randomBytes(size) }));
  const { depacketizer, out } = take('VP8');
  for (const one of sent(frames)) depacketizer.push(one);
  t.deepEqual(
    out,
    frames.map(({ data }, i) => [data, i * 3000]),
  );
  for (const descriptor of [
    '10',
    '90 00',
    '90 80 11',
    '90 80 8011',
    '90 40 22',
    '90 20 22',
    '90 10 22',
    '90 f0 8011 22 33',
    'b0 00',
  ]) {
    out.length = 0;
    depacketizer.push(packet(`${descriptor} aabb`, { timestamp: 1 }));
    depacketizer.push(packet('00 cc', { timestamp: 1, marker: true }));
    t.deepEqual(out, [[Buffer.from('aabbcc', 'hex'), 1]], descriptor);
  }
  for (const bad of ['10', '90', '90 80', '90 80 80', '90 f0 8011 22 33', '00 aa']) {
    out.length = 0;
    depacketizer.push(packet(bad, { timestamp: 2, marker: true }));
    t.is(typeof out[0], 'string', bad);
  }
});

test('VP9: frames come back; the forms of the descriptor (RFC 9628 section 4.2)', (t) => {
  const frames = [5000, 1, 1197, 20_000].map((size, i) => ({
    track: videoOf('VP9'),
    key: i === 0,
    data: randomBytes(size),
  }));
  const { depacketizer, out } = take('VP9');
  for (const one of sent(frames)) depacketizer.push(one);
  t.deepEqual(
    out,
    frames.map(({ data }, i) => [data, i * 3000]),
  );
  for (const descriptor of [
    '08',
    '88 11',
    '88 8011',
    'a8 11 20 05',
    'b8 11 20',
    'f8 8011 20 03 04',
    '0a 18 0280 0168 01 04 05',
    '8a 11 38 0140 00b4 0280 0168 02 00 01',
  ]) {
    out.length = 0;
    depacketizer.push(packet(`${descriptor} aabb`, { timestamp: 1 }));
    depacketizer.push(packet('04 cc', { timestamp: 1, marker: true }));
    t.deepEqual(out, [[Buffer.from('aabbcc', 'hex'), 1]], descriptor);
  }
  for (const bad of ['08', '88', '88 80', 'a8 11 20', '0a 18 0280']) {
    out.length = 0;
    depacketizer.push(packet(bad, { timestamp: 2, marker: true }));
    t.is(typeof out[0], 'string', bad);
  }
});

test('VP9: of spatial layers the lowest, as soon as it is whole', (t) => {
  const { depacketizer, out } = take('VP9');
  depacketizer.push(packet('ac 11 00 00 aa', { timestamp: 1 }));
  t.deepEqual(out, [[Buffer.of(0xaa), 1]]);
  depacketizer.push(packet('ac 11 03 00 bb', { timestamp: 1 }));
  depacketizer.push(packet('ac 11 05 00 cc', { timestamp: 1, marker: true }));
  depacketizer.push(packet('ac 12 20 00 dd', { timestamp: 2 }));
  depacketizer.push(packet('ac 12 23 00 ee', { timestamp: 2, marker: true }));
  t.deepEqual(out, [
    [Buffer.of(0xaa), 1],
    [Buffer.of(0xdd), 2],
  ]);
});

test('AV1: temporal units come back; the forms of the aggregation header', (t) => {
  const units = samples(vector('av1-svt.mp4')).map((data) => canonicalize(data));
  const { depacketizer, out } = take('AV1');
  const frames = units.map((data, i) => ({ track: videoOf('AV1'), key: i === 0, data }));
  for (const one of sent(frames)) depacketizer.push(one);
  t.deepEqual(
    out,
    units.map((data, i) => [data, i * 3000]),
  );
  const whole = Buffer.from('0a02 bbcc 3203 ddeeff'.replaceAll(' ', ''), 'hex');
  const forms: readonly (readonly string[])[] = [
    ['08 03 08bbcc 04 30ddeeff'],
    ['28 03 08bbcc 30ddeeff'],
    // a delimiter, and an OBU that has its size already
    ['38 01 10 03 08bbcc 3203ddeeff'],
    ['68 03 08bbcc 30dd', '90 eeff'],
    ['68 03 08bbcc 30', 'd0 dd', '90 eeff'],
    ['58 08bb', 'a0 01 cc 30ddeeff'],
  ];
  for (const payloads of forms) {
    out.length = 0;
    payloads.forEach((payload, i) =>
      depacketizer.push(packet(payload, { timestamp: 1 + out.length, marker: i === payloads.length - 1 })),
    );
    t.deepEqual(out, [[whole, 1]], payloads.join());
  }
  // an extension, alone in its packet
  out.length = 0;
  depacketizer.push(packet('58 34', { timestamp: 3 }));
  depacketizer.push(packet('90 08 dd', { timestamp: 3, marker: true }));
  t.deepEqual(out, [[Buffer.of(0x36, 0x08, 1, 0xdd), 3]]);
  for (const bad of [['08 05 08bb'], ['08 80808001'], ['68 03 08bbcc 30dd'], ['50 30', '10 30dd']]) {
    out.length = 0;
    bad.forEach((payload, i) => depacketizer.push(packet(payload, { timestamp: 4, marker: i === bad.length - 1 })));
    t.is(typeof out[0], 'string', bad.join());
    t.is(out.length, 1);
  }
});

test('AV1: after a loss a new sequence, or what surely begins a unit, goes on', (t) => {
  const { depacketizer, frames } = take('AV1');
  depacketizer.push(packet('18 08bb', { timestamp: 1, marker: true }));
  depacketizer.lose();
  depacketizer.push(packet('10 20dd', { timestamp: 2, marker: true }));
  t.is(frames().length, 1);
  depacketizer.push(packet('10 30dd', { timestamp: 3, marker: true }));
  depacketizer.lose();
  depacketizer.push(packet('18 08bb', { timestamp: 4, marker: true }));
  t.is(frames().length, 3);
});

test('a frame of more units than an encoder makes is left out before they are taken, the next one comes', (t) => {
  const nals = (size: number, header: string, unit: string) => `${header} ${unit.repeat(size)}`;
  const cases = [
    ['H264', nals(1000, '78', '000167'), '41 9b'],
    ['H265', nals(1000, '6001', '00024001'), '0201 80'],
    ['AV1', nals(1000, '00', '0128'), '18 08bb'],
  ] as const;
  for (const [codec, bomb, good] of cases) {
    const { depacketizer, out, frames } = take(codec);
    for (let i = 0; i < 10; i++)
      depacketizer.push(
        packet(i === 0 && codec === 'AV1' ? bomb.replace('00', '08') : bomb, { timestamp: 1, marker: i === 9 }),
      );
    t.deepEqual(
      out.map((one) => typeof one),
      ['string'],
      codec,
    );
    depacketizer.push(packet(good, { timestamp: 2, marker: true }));
    t.is(frames().length, 1, codec);
  }
});

test('a picture of many slices, each in fragments, is taken', (t) => {
  const { depacketizer, frames } = take('H264');
  for (let i = 0; i < 3000; i++) {
    const edge = i % 3 === 0 ? '80' : i % 3 === 2 ? '40' : '00';
    depacketizer.push(
      packet(`7c ${(Number.parseInt(edge, 16) | 5).toString(16).padStart(2, '0')} ${i === 0 ? '88' : '11'}`, {
        timestamp: 1,
        marker: i === 2999,
      }),
    );
  }
  t.is(frames().length, 1);
});

test('a frame of more pieces than any picture has is dropped, and its rest with it', (t) => {
  const pieces = 20_000;
  for (const [encoding, one] of [
    ['H264', `18${'000167'.repeat(pieces)}`],
    ['AV1', `08${'0132'.repeat(pieces)}`],
  ] as const) {
    const { depacketizer, out, frames } = take(encoding);
    depacketizer.push(packet(one, { timestamp: 0 }));
    depacketizer.push(packet(one, { timestamp: 0, marker: true }));
    t.deepEqual(frames(), [], encoding);
    t.true(out.length > 0 && out.every((each) => typeof each === 'string'), encoding);
  }
});

test('interleaved video, or video of unknown payload format, is rejected', (t) => {
  const sink = { frame: () => t.fail(), damaged: () => t.fail(), configuration: () => t.fail() };
  for (const [encoding, parameters] of [
    ['H264', { 'packetization-mode': '2' }],
    ['H265', { 'sprop-max-don-diff': '1' }],
    ['JPEG', {}],
    ['', {}],
  ] as const)
    t.throws(() => createDepacketizer({ encoding, clockRate: 90_000, parameters }, sink), { instanceOf: RtpError });
});

test('start codes before units, whole and in fragments, stay for the splitter', (t) => {
  const forms: Record<string, readonly (readonly [string, ...string[]])[]> = {
    // RFC 6184: a single unit, and FU-A of a unit that begins with 00 00 00 01
    H264: [['0000000165 88aa'], ['00000165 88aa'], ['1c 80 000001 65', '1c 00 88', '1c 40 aa']],
    // RFC 7798
    H265: [['00000001 2601 80'], ['000001 2601 80'], ['6200 80 0001 26', '6200 00 01', '6200 40 80']],
  };
  for (const [codec, all] of Object.entries(forms)) {
    for (const parts of all) {
      const { depacketizer, frames } = take(codec);
      for (const timestamp of [1, 2]) {
        for (const [i, part] of parts.entries())
          depacketizer.push(packet(part, { timestamp, marker: i === parts.length - 1 }));
      }
      const [first, second] = frames();
      t.deepEqual(first, second, String(parts));
      const sent = codec === 'H264' ? '6588aa' : '260180';
      t.deepEqual(splitAnnexB(first?.subarray(4) ?? Buffer.alloc(0)), [Buffer.from(sent, 'hex')], String(parts));
    }
  }
  const { depacketizer, frames } = take('H264');
  depacketizer.push(packet('00 1122', { timestamp: 1, marker: true }));
  t.deepEqual(frames(), []);
});

test('fragments without an end: the marker is believed where the next frame begins behind it', (t) => {
  const forms = {
    H264: { start: '7c 81 80', on: '7c 01 22', alone: '41 9a' },
    H265: { start: '6201 81 80', on: '6201 01 22', alone: '0201 80' },
  } as const;
  for (const [codec, { start, on, alone }] of Object.entries(forms)) {
    const { depacketizer, out, frames } = take(codec);
    const frame = (timestamp: number, last = on): void => {
      depacketizer.push(packet(start, { timestamp }));
      depacketizer.push(packet(on, { timestamp }));
      depacketizer.push(packet(last, { timestamp, marker: true }));
    };
    frame(1);
    t.is(out.length, 0, codec);
    frame(2);
    // the first and, with its marker, the second
    t.is(frames().length, 2, codec);
    t.deepEqual(frames()[0], frames()[1]);
    frame(3);
    depacketizer.push(packet(alone, { timestamp: 4, marker: true }));
    t.is(frames().length, 4, codec);
    t.is(out.length, 4);
    // what was lost stays lost
    depacketizer.push(packet(start, { timestamp: 5 }));
    depacketizer.lose();
    depacketizer.push(packet(on, { timestamp: 5, marker: true }));
    t.is(frames().length, 4, codec);
  }
});

test('fragments without an end: what does not prove that the frame is whole costs it', (t) => {
  const without = take('H264');
  // no marker
  without.depacketizer.push(packet('7c 81 80', { timestamp: 1 }));
  without.depacketizer.push(packet('7c 01 22', { timestamp: 1 }));
  without.depacketizer.push(packet('41 9a', { timestamp: 2, marker: true }));
  t.deepEqual(without.frames(), [hexNals('419a')]);
  // what follows may belong to it, as it begins no frame
  const later = take('H264');
  later.depacketizer.push(packet('7c 81 80', { timestamp: 1 }));
  later.depacketizer.push(packet('7c 01 22', { timestamp: 1, marker: true }));
  later.depacketizer.push(packet('41 1a', { timestamp: 2, marker: true }));
  t.false(later.out.some(([frame]) => frame instanceof Buffer && frame.includes(0x22)));
  // a marker in the middle of one
  const inside = take('H264');
  inside.depacketizer.push(packet('7c 81 80', { timestamp: 1, marker: true }));
  inside.depacketizer.push(packet('7c 41 22', { timestamp: 1, marker: true }));
  t.deepEqual(inside.frames(), [hexNals('61 80 22')]);
});
