import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import { Reader, type Consumer, type ReaderLimits } from '../../../src/core/reader.ts';
import { seeded } from '../codecs/vectors.ts';
import { audio, Sink, VIDEO, video } from './support.ts';

function open(consumer: Consumer, limits: Partial<ReaderLimits> = {}) {
  let detached = 0;
  const reader = new Reader(consumer, () => detached++, { bytes: 1_000_000, seconds: 5, ...limits });
  return { reader, detached: () => detached };
}

const times = ({ packets }: Sink) => packets.map(({ dts, track }) => dts / track.timebase.den);

test("a consumer that keeps up is called in the writer's turn", (t) => {
  const sink = new Sink();
  const { reader } = open(sink);
  const packet = video(0, true);
  reader.push(packet);
  t.is(sink.packets[0], packet);
  t.is(reader.queuedBytes, 0);
});

test('a consumer without an answer takes everything', (t) => {
  const got: Packet[] = [];
  const { reader } = open({ packet: (packet) => void got.push(packet) });
  for (let i = 0; i < 3; i++) reader.push(video(i, i === 0));
  t.is(got.length, 3);
});

test('a reader that is full is queued for and loses nothing within its limits', (t) => {
  const sink = new Sink();
  const { reader } = open(sink);
  sink.open = false;
  for (let i = 0; i < 5; i++) reader.push(video(i / 10, i === 0, 100));
  t.deepEqual(times(sink), [0], 'the packet it was full after is taken');
  t.is(reader.queuedBytes, 400);
  reader.resume();
  t.deepEqual(times(sink), [0, 0.1]);
  sink.open = true;
  reader.resume();
  t.deepEqual(times(sink), [0, 0.1, 0.2, 0.3, 0.4]);
  t.is(reader.queuedBytes, 0);
  reader.push(video(0.5, false));
  t.is(sink.packets.length, 6, 'then it is called directly again');
  t.is(reader.dropped, 0);
});

test('a consumer that is far behind goes on at the newest key frame', (t) => {
  const sink = new Sink();
  const { reader } = open(sink);
  sink.open = false;
  for (let i = 0; i <= 25; i++) reader.push(video(i / 10, i % 10 === 0));
  t.is(reader.queuedSeconds, 2.4);
  reader.skip();
  t.is(reader.queuedSeconds, 0.5);
  t.is(reader.dropped, 19);
  sink.open = true;
  reader.resume();
  t.deepEqual(times(sink), [0, 2, 2.1, 2.2, 2.3, 2.4, 2.5]);
  t.is(reader.queuedSeconds, 0);
  reader.skip();
  reader.push(video(2.6, false));
  t.is(reader.dropped, 19, 'nothing was queued');
  t.is(times(sink).at(-1), 2.6);
});

test('a reader beyond its bytes loses what is queued, up to the next key frame', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { bytes: 250 });
  sink.open = false;
  reader.push(video(0, true));
  for (let i = 1; i <= 3; i++) reader.push(video(i / 10, false));
  t.is(reader.dropped, 3);
  t.is(reader.queuedBytes, 0);
  sink.open = true;
  reader.resume();
  reader.push(video(0.4, false));
  reader.push(audio(0.4));
  t.is(reader.dropped, 5, 'nothing that cannot be decoded or shown');
  reader.push(video(0.5, true));
  reader.push(audio(0.5));
  reader.push(video(0.6, false));
  t.deepEqual(times(sink), [0, 0.5, 0.5, 0.6]);
});

test('a reader beyond its seconds goes on at the newest key frame it is queued for', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { seconds: 2 });
  sink.open = false;
  for (let i = 0; i <= 21; i++) reader.push(video(i / 10, i % 10 === 0));
  t.is(reader.queuedBytes, 2100, 'all but the first, within the limit');
  reader.push(video(2.2, false));
  t.is(reader.dropped, 19);
  t.is(reader.queuedBytes, 300, 'the key frame at 2.0 and two behind it');
  sink.open = true;
  reader.resume();
  t.deepEqual(times(sink), [0, 2, 2.1, 2.2]);
});

test('a key frame that tips the limit is not thrown away', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { bytes: 1000 });
  sink.open = false;
  reader.push(video(0, true));
  reader.push(video(0.1, false, 500));
  reader.push(video(0.2, true, 600));
  t.is(reader.dropped, 1);
  sink.open = true;
  reader.resume();
  t.deepEqual(times(sink), [0, 0.2]);
  reader.push(video(0.3, false));
  t.is(sink.packets.length, 3);
});

test('a key frame beyond the limit alone goes too', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { bytes: 1000 });
  sink.open = false;
  reader.push(video(0, true));
  reader.push(video(0.1, false, 500));
  reader.push(video(0.2, true, 1500));
  t.is(reader.dropped, 2);
  t.is(reader.queuedBytes, 0);
  reader.push(video(0.3, false));
  t.is(reader.dropped, 3);
});

test('sound alone goes on at once', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { seconds: 1 });
  sink.open = false;
  for (let i = 0; i <= 12; i++) reader.push(audio(i / 10));
  t.is(reader.dropped, 12);
  sink.open = true;
  reader.resume();
  reader.push(audio(1.3));
  t.deepEqual(times(sink), [0, 1.3]);
});

test('a consumer that resumes, writes or closes from within its own call', (t) => {
  const got: number[] = [];
  const { reader, detached } = open({
    packet: ({ dts }) => {
      got.push(dts / 90_000);
      if (got.length === 1) return false;
      if (got.length === 2) reader.push(video(3, false));
      reader.resume();
      if (got.length === 4) reader.close();
      return true;
    },
  });
  for (let i = 0; i < 3; i++) reader.push(video(i, i === 0));
  reader.resume();
  t.deepEqual(got, [0, 1, 2, 3], 'in order, each once');
  reader.push(video(10, true));
  reader.resume();
  t.is(got.length, 4);
  t.is(detached(), 1);
});

test('limits that are passed from within a call lose no later packet', (t) => {
  const got: number[] = [];
  const { reader } = open(
    {
      packet: ({ dts }) => {
        got.push(dts / 90_000);
        if (got.length === 1) return false;
        if (got.length === 2) {
          reader.push(video(3, false, 400));
          reader.push(video(4, true));
          reader.push(video(5, false));
        }
        return true;
      },
    },
    { bytes: 300 },
  );
  reader.push(video(0, true));
  reader.push(video(1, false));
  reader.push(video(2, false));
  reader.resume();
  t.deepEqual(got, [0, 1, 4, 5]);
  t.is(reader.dropped, 2);
  t.is(reader.queuedBytes, 0);
});

test('a consumer that fails while it catches up gets the rest later, not the same again', (t) => {
  const got: number[] = [];
  const { reader } = open({
    packet: ({ dts }) => {
      got.push(dts / 90_000);
      if (got.length === 2) throw new Error('broken');
      return got.length > 1;
    },
  });
  for (let i = 0; i < 4; i++) reader.push(video(i, i === 0));
  t.throws(() => reader.resume(), { message: 'broken' });
  reader.resume();
  t.deepEqual(got, [0, 1, 2, 3]);
});

test('a reader is notified of the end of the stream once, and not of its own close', (t) => {
  const sink = new Sink();
  const { reader, detached } = open(sink);
  reader.end('source gone');
  reader.end('again');
  reader.close();
  reader.push(video(0, true));
  t.deepEqual(sink.reasons, ['source gone']);
  t.is(sink.packets.length, 0);
  t.is(detached(), 1);
  const quiet = new Sink();
  const own = open(quiet);
  quiet.open = false;
  own.reader.push(video(0, true));
  own.reader.push(video(1, true));
  own.reader.close();
  own.reader.resume();
  t.deepEqual([quiet.reasons, quiet.packets.length, own.reader.queuedBytes], [[], 1, 0]);
});

/** What each of two renditions of a picture got: seconds, those of key frames as text. */
function renditions({ packets }: Sink) {
  const of = (id: number) =>
    packets.filter(({ track }) => track.id === id).map(({ dts, key }) => (key ? `key ${dts / 90_000}` : dts / 90_000));
  return { high: of(0), low: of(LOW.id) };
}

const LOW = { ...VIDEO, id: 7 };

test('each of several video tracks waits for a key frame of its own after a loss', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { bytes: 250 });
  sink.open = false;
  reader.push(video(0, true));
  for (let i = 1; i <= 3; i++) reader.push(video(i / 10, false, 50, i % 2 === 0 ? VIDEO : LOW));
  reader.push(video(0.4, false, 200));
  t.is(reader.queuedBytes, 0);
  sink.open = true;
  reader.resume();
  reader.push(video(0.5, true));
  reader.push(video(0.5, false, 50, LOW));
  reader.push(audio(0.5));
  reader.push(video(0.6, true, 50, LOW));
  reader.push(video(0.6, false));
  reader.push(video(0.7, false, 50, LOW));
  t.deepEqual(renditions(sink), { high: ['key 0', 'key 0.5', 0.6], low: ['key 0.6', 0.7] });
  t.is(reader.dropped, 5);
});

test('a track of which nothing was in the queue waits too when something of it is left out', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { bytes: 150 });
  sink.open = false;
  reader.push(video(0, true));
  reader.push(video(0, true, 50, LOW));
  reader.push(video(0.1, false, 200));
  reader.push(video(0.1, false, 50, LOW));
  sink.open = true;
  reader.resume();
  reader.push(video(0.2, true));
  reader.push(video(0.2, false, 50, LOW));
  t.deepEqual(renditions(sink), { high: ['key 0', 'key 0.2'], low: [] });
});

test('renditions with key frames at the same time lose up to those, none a whole group', (t) => {
  const sink = new Sink();
  const { reader } = open(sink, { seconds: 2 });
  sink.open = false;
  for (let i = 0; i <= 21; i++) {
    reader.push(video(i / 10, i % 10 === 0));
    reader.push(video(i / 10, i % 10 === 0, 50, LOW));
  }
  sink.open = true;
  reader.resume();
  t.deepEqual(renditions(sink), { high: ['key 0', 'key 2', 2.1], low: ['key 2', 2.1] });
});

test('a rendition never goes on without its key frame, whatever is lost', (t) => {
  const random = seeded(11);
  for (let round = 0; round < 50; round++) {
    const sink = new Sink();
    const { reader } = open(sink, { bytes: 1000, seconds: 1 });
    const written: Packet[][] = [[], []];
    for (let i = 0; i < 400; i++) {
      sink.open = random() < 0.5;
      if (random() < 0.3) reader.resume();
      const which = random() < 0.5 ? 0 : 1;
      const own = written[which] as Packet[];
      const key = own.length === 0 || random() < 0.1;
      const packet = video(i / 50, key, 10 + Math.floor(random() * 300), which === 0 ? VIDEO : LOW);
      own.push(packet);
      reader.push(packet);
    }
    sink.open = true;
    reader.resume();
    t.true(reader.dropped > 0);
    for (const own of written) {
      const places = sink.packets.map((packet) => own.indexOf(packet)).filter((place) => place >= 0);
      for (const [i, place] of places.entries()) t.true(own[place]?.key === true || places[i - 1] === place - 1);
    }
  }
});

test('a reader keeps order and limits, and counts what is not delivered, whatever its consumer does', (t) => {
  const random = seeded(3);
  for (let round = 0; round < 50; round++) {
    const sink = new Sink();
    const { reader } = open(sink, { bytes: 3000, seconds: 1 });
    let written = 0;
    for (let i = 0; i < 400; i++) {
      sink.open = random() < 0.5;
      if (random() < 0.3) reader.resume();
      reader.push(random() < 0.4 ? audio(i / 50) : video(i / 50, i % 20 === 0, 10 + Math.floor(random() * 300)));
      written++;
      t.true(reader.queuedBytes <= 3000);
    }
    sink.open = true;
    reader.resume();
    const order = times(sink);
    t.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
    t.is(order.length + reader.dropped, written);
    t.is(reader.queuedBytes, 0);
  }
});
