import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import type { DataTrack } from '../../../src/core/track.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseBoxes, parseEmsg, parseFragment } from '../../support/media/boxes.ts';
import {
  audioPackets,
  audioTrack,
  dataTrack,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../support/media/packets.ts';
import { startSegmenter as start } from '../../support/media/segmenter.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const ID3 = dataTrack();
const ANCHOR = 'https://aomedia.org/emsg/ID3';

/** @param seconds when it comes; it takes effect `ahead` seconds later */
function event(text: string, seconds: number, track = ID3, ahead = 0): Packet {
  const dts = Math.round(seconds * track.timebase.den);
  const pts = Math.round((seconds + ahead) * track.timebase.den);
  return { track, dts, pts, duration: 0, key: true, data: Buffer.from(text) };
}

/** The events of a track's parts: number of the segment and the part, text, milliseconds, and from where the part is. */
function events(segments: readonly Segment[]) {
  return segments.flatMap(({ msn, parts }) =>
    parts.flatMap(({ index, data }) =>
      parseBoxes(data)
        .filter(({ type }) => type === 'emsg')
        .map(({ content }) => {
          const { message, time } = parseEmsg(content);
          return [msn, index, message.toString(), time];
        }),
    ),
  );
}

test('an event goes out in front of the fragment that covers its time, with every track', (t) => {
  const { push, segments } = start([VIDEO, AUDIO, ID3]);
  push(interleaved(videoPackets(VIDEO, { to: 4 }), audioPackets(AUDIO, { to: 4 }), [event('one', 2.75)]));
  t.deepEqual(events(segments(0)), [[1, 1, 'one', 2750]]);
  t.deepEqual(
    events(segments(1)).map(([msn, , text, time]) => [msn, text, time]),
    [[1, 'one', 2750]],
  );
  const boxes = [0, 1].map((id) => {
    const part = segments(id)[1]?.parts.find(({ data }) => data.includes('emsg'));
    const [first, ...fragment] = parseBoxes(part?.data as Buffer);
    t.is(first?.type, 'emsg');
    t.deepEqual(
      fragment.map(({ type }) => type),
      ['moof', 'mdat'],
    );
    t.notThrows(() => parseFragment((part?.data as Buffer).subarray(8 + (first?.content.length ?? 0))));
    t.is(part?.bytes, part?.data.length);
    return parseEmsg(first?.content as Buffer);
  });
  const [video, audio] = boxes;
  t.like(video, { scheme: ANCHOR, value: 'OvenMediaEngine', timescale: 1000, duration: 0xffff_ffff });
  t.is(video?.id, audio?.id, 'it is one event');
});

test('KLV has no place in fragments', (t) => {
  const { push, segments } = start([VIDEO, AUDIO]);
  const klv: DataTrack = { ...ID3, id: 1025, codec: 'KLV' };
  push(
    interleaved(videoPackets(VIDEO, { to: 2.5 }), audioPackets(AUDIO, { to: 2.5 }), [
      event('klv', 1.1, klv),
      event('tag', 1.2),
    ]),
  );
  t.deepEqual(
    events(segments(0)).map(([, , text]) => text),
    ['tag'],
  );
});

test('a target chooses the tracks; ids count on', (t) => {
  const { push, segments } = start([VIDEO, AUDIO]);
  const forVideo: DataTrack = { ...ID3, target: 'video' };
  const forAudio: DataTrack = { ...ID3, id: 1025, target: 'audio' };
  push(
    interleaved(videoPackets(VIDEO, { to: 2.5 }), audioPackets(AUDIO, { to: 2.5 }), [
      event('v', 1.1, forVideo),
      event('a', 1.2, forAudio),
      event('both', 1.3),
    ]),
  );
  const texts = (id: number) => events(segments(id)).map(([, , text]) => text);
  t.deepEqual(texts(0), ['v', 'both']);
  t.deepEqual(texts(1), ['a', 'both']);
  const ids = segments(0)
    .flatMap(({ parts }) => parts.flatMap(({ data }) => parseBoxes(data)))
    .filter(({ type }) => type === 'emsg')
    .map(({ content }) => parseEmsg(content).id);
  t.is((ids[1] as number) - (ids[0] as number), 2);
});

test('an event waits for media that an encoder brings later', (t) => {
  const { push, segments } = start([VIDEO]);
  const [before, after] = [videoPackets(VIDEO, { to: 1 }), videoPackets(VIDEO, { from: 1, to: 5 })];
  push([...before, event('early', 3.25), ...after]);
  t.deepEqual(events(segments(0)), [[1, 2, 'early', 3250]]);
});

test('an event that is late goes out with the next part, and takes effect where that begins', (t) => {
  const { push, segments } = start([VIDEO]);
  push([...videoPackets(VIDEO, { to: 2.1 }), event('late', 1.2), ...videoPackets(VIDEO, { from: 2.1, to: 3 })]);
  t.deepEqual(events(segments(0)), [[1, 0, 'late', 2000]]);
});

test('an event that takes effect later is sent when it comes, with its own time', (t) => {
  const { push, segments } = start([VIDEO]);
  const splices: DataTrack = { ...ID3, codec: 'SCTE35' };
  push(interleaved(videoPackets(VIDEO, { to: 3 }), [event('splice', 1.1, splices, 8)]));
  t.deepEqual(events(segments(0)), [[0, 2, 'splice', 9100]]);
  const [first] = parseBoxes(segments(0)[0]?.parts[2]?.data as Buffer);
  t.is(parseEmsg(first?.content as Buffer).scheme, 'urn:scte:scte35:2013:bin');
});

test('events are on the timeline of the parts where that is shifted', (t) => {
  const { push, segments } = start([VIDEO]);
  push(interleaved(videoPackets(VIDEO, { from: -3, to: 0 }), [event('negative', -1.5)]));
  const found = events(segments(0));
  t.deepEqual(
    found.map(([, , text, time]) => [text, time]),
    [['negative', 1500]],
  );
});

test('waiting events go out at once after a jump of the clock', (t) => {
  const { push, segments } = start([VIDEO]);
  push([
    ...videoPackets(VIDEO, { from: 100, to: 103 }),
    event('ahead', 104),
    ...videoPackets(VIDEO, { from: 0, to: 3 }),
  ]);
  const [found, ...others] = events(segments(0));
  t.deepEqual(others, []);
  t.is(found?.[2], 'ahead');
  const jumped = segments(0).find(({ discontinuity }) => discontinuity);
  t.deepEqual([found?.[0], found?.[1], found?.[3]], [jumped?.msn, 0, 0]);
});

test('events that nothing comes for are bounded, and those of other kinds are left out', (t) => {
  const { push, segments, faults } = start([VIDEO]);
  push(videoPackets(VIDEO, { to: 1 }));
  const splices: DataTrack = { ...ID3, id: 9, codec: 'SCTE35' };
  push([event('splice', 2, splices)]);
  for (let count = 0; count < 1100; count++) push([event(`${count}`, 2)]);
  for (let count = 0; count < 2000; count++) push([event('item', 2, { ...ID3, id: 8, codec: 'KLV' })]);
  push([event('{}', 1, { ...ID3, codec: 'CUE' })]);
  push(videoPackets(VIDEO, { from: 1, to: 4 }));
  const found = events(segments(0));
  t.is(found.length, 1001);
  t.is(found[0]?.[2], 'splice', 'those of other codecs do not displace it');
  t.is(found[1]?.[2], '100');
  t.true(faults().some((line) => line.includes('dropped an event')));
});

test('events too old to be of use do not go out, nor those of a stream that was interrupted', (t) => {
  const { push, segments, segmenter } = start([VIDEO]);
  push(videoPackets(VIDEO, { from: 100, to: 101 }));
  push([event('old', 80)]);
  push(videoPackets(VIDEO, { from: 101, to: 102 }));
  push([event('ahead', 110)]);
  segmenter.finish();
  push(videoPackets(VIDEO, { from: 109, to: 112 }));
  t.deepEqual(events(segments(0)), []);
});

test('silent tracks of events hold nothing back', (t) => {
  const quiet = start([VIDEO, AUDIO]);
  const silent = start([VIDEO, AUDIO, ID3]);
  const packets = interleaved(videoPackets(VIDEO, { to: 5 }), audioPackets(AUDIO, { to: 5 }));
  quiet.push(packets);
  silent.push(packets);
  for (const id of [0, 1])
    t.deepEqual(
      silent.segments(id).flatMap(({ parts }) => parts.map(({ data }) => data)),
      quiet.segments(id).flatMap(({ parts }) => parts.map(({ data }) => data)),
    );
});
