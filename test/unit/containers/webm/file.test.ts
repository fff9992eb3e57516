import test from 'ava';
import { size64, vint } from '../../../../src/containers/webm/ebml.ts';
import { WebmFile } from '../../../../src/containers/webm/file.ts';
import { trackEntry } from '../../../../src/containers/webm/tracks.ts';
import { videoPackets, videoTrack } from '../../../support/media/packets.ts';

const TRACK = videoTrack({ codec: 'VP8', config: undefined });

test('sizes take as many bytes as they need, and are never all ones', (t) => {
  t.is(vint(0).toString('hex'), '80');
  t.is(vint(126).toString('hex'), 'fe');
  t.is(vint(127).toString('hex'), '407f');
  t.is(vint(16_382).toString('hex'), '7ffe');
  t.is(vint(16_383).toString('hex'), '203fff');
  t.is(size64(5).toString('hex'), '0100000000000005');
});

test('a cluster of two frames, byte for byte, behind the head', (t) => {
  const file = new WebmFile([TRACK]);
  const packet = (pts: number, key: boolean, data: string) => ({
    track: TRACK,
    dts: pts,
    pts,
    duration: 3600,
    key,
    data: Buffer.from(data, 'hex'),
  });
  t.deepEqual(file.write(packet(900_000, true, 'aabb')), []);
  t.deepEqual(file.write(packet(903_600, false, 'cc')), []);
  const [head, ...cluster] = file.write(packet(990_000, true, 'dd'));
  t.is(head?.toString('hex', 0, 4), '1a45dfa3');
  t.is(
    Buffer.concat(cluster).toString('hex'),
    [
      '1f43b67592', // Cluster of 18 bytes
      'e78100', // Timestamp 0
      'a386', // SimpleBlock
      '81000080aabb', // track 1, at 0 ms, key frame
      'a385',
      '81002800cc', // at 40 ms
    ].join(''),
  );
  const { tail, patches } = file.end();
  const cues = tail.at(-1) as Buffer;
  t.is(cues.toString('hex', 0, 4), '1c53bb6b');
  const bytes = Buffer.concat([head as Buffer, ...cluster, ...tail]);
  const segment = bytes.indexOf('1853806701ffffffffffffff', 0, 'hex') + 12;
  const places = [...cues.toString('hex').matchAll(/f78101f1(?:81(..)|82(....))/g)].map(([, one, two]) =>
    Number.parseInt(one ?? two ?? '', 16),
  );
  t.deepEqual(
    places.map((at) => bytes.toString('hex', segment + at, segment + at + 4)),
    ['1f43b675', '1f43b675'],
  );
  t.deepEqual(
    patches.map(({ data }) => data.toString('hex', 0, 2)),
    ['0100', '4489', '114d'], // size of the segment, duration, seek head
  );
});

test('WebM is not written without packets', (t) => {
  t.deepEqual(new WebmFile([TRACK]).end(), { tail: [], patches: [] });
});

test('WebM holds payloads themselves, not copies', (t) => {
  const sent = videoPackets(TRACK, { to: 3 });
  const file = new WebmFile([TRACK]);
  const out = new Set(sent.flatMap((one) => file.write(one)).concat(file.end().tail));
  t.true(sent.every(({ data }) => out.has(data)));
});

test('display size and colour are declared where they are not what players assume', (t) => {
  const head = (shape: Partial<typeof TRACK>) => trackEntry({ ...TRACK, ...shape }, 1).toString('hex');
  const plain = head({ width: 720, height: 576 });
  const video = (elements: string) => `e0${vint(elements.length / 2).toString('hex')}${elements}`;
  const pixels = 'b08202d0ba820240';
  t.true(plain.endsWith(video(pixels)));
  const wide = head({ width: 720, height: 576, sar: { num: 64, den: 45 } });
  t.true(wide.endsWith(video(`${pixels}54b082040054ba820240`)));
  const colour = { primaries: 9, transfer: 16, matrix: 9, fullRange: false };
  const hdr = head({ width: 720, height: 576, colour });
  t.true(hdr.endsWith(video(`${pixels}55b09055b1810955b9810155ba811055bb8109`)));
  t.is(head({ width: 720, height: 576, colour: { primaries: 1, transfer: 1, matrix: 1, fullRange: false } }), plain);
});
