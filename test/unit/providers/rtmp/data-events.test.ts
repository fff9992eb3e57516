import test, { type ExecutionContext } from 'ava';
import type { RtmpProviderConfig } from '../../../../src/config/model.ts';
import { id3Tag } from '../../../../src/containers/id3.ts';
import { DataEvents } from '../../../../src/providers/rtmp/data-events.ts';
import { decodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import { amfObject, type AmfObject, type AmfValue } from '../../../../src/protocols/rtmp/amf-value.ts';
import { recordInput } from '../../../support/media/input-recorder.ts';
import { VIDEO } from '../../../support/server/live.ts';

type EventGenerator = RtmpProviderConfig['eventGenerator'];

function setUp(t: ExecutionContext, eventGenerator?: EventGenerator) {
  const { input, packets, faults, lines } = recordInput(t, { type: 'Rtmp', kind: 'rtmp' });
  input.setTracks([VIDEO]);
  const at = 3 * VIDEO.timebase.den;
  input.write({ track: VIDEO, dts: at, pts: at, duration: 0, key: true, data: Buffer.of(1) });
  const events = new DataEvents(input, { eventGenerator }, faults);
  t.teardown(() => events.close());
  const seen = () => packets.flatMap(({ track, data, pts }) => (track.type === 'data' ? [{ track, data, pts }] : []));
  const dropped = () => {
    faults.close();
    return lines;
  };
  return { events, seen, dropped };
}

function record(properties: AmfObject): AmfObject {
  return Object.assign(amfObject(), properties);
}

function generator(trigger: string, data: string, eventType: 'video' | 'event' = 'event'): EventGenerator {
  return { event: [{ trigger, hlsid3v2: { eventType, frameType: 'TXXX', info: 'i', data } }] };
}

const txxx = (data: string) => id3Tag([{ id: 'TXXX', description: 'i', value: data }]);

test('text data and cue points pass as they are, at the time of the media', (t) => {
  const { events, seen } = setUp(t);
  events.take(['onTextData', record({ text: 'hello', language: 'en' })]);
  events.take(['@setDataFrame', 'onCuePoint', null, record({ name: 'a', list: [1, true, new Date(5)] })]);
  events.take(['onMetaData', record({ width: 1 })]);
  events.take(['onFI', record({ st: '1' })]);
  t.deepEqual(
    seen().map(({ track, data, pts }) => [track.codec, pts, decodeAmf0(data)]),
    [
      ['AMF', 270_000, ['onTextData', record({ text: 'hello', language: 'en' })]],
      ['AMF', 270_000, ['onCuePoint', null, record({ name: 'a', list: [1, true, new Date(5)] })]],
    ],
  );
});

for (const trigger of ['onTextData.text', 'AMFDataMessage.onTextData.text', 'AMFDataMessage.[onTextData].[text]'])
  test(`${trigger} becomes an ID3 tag`, (t) => {
    const { events, seen } = setUp(t, generator(trigger, 'text: ${TriggerValue}', 'video'));
    events.take(['onTextData', record({ text: 'a $& b' })]);
    const [amf, id3] = seen();
    t.is(amf?.track.codec, 'AMF');
    t.deepEqual(id3?.data, txxx('text: a $& b'));
    t.like(id3?.track, { codec: 'ID3v2', target: 'video' });
  });

test('other data messages are events only where a trigger names them', (t) => {
  const { events, seen } = setUp(t, generator('onScore.teams.0.goals', ''));
  events.take(['onScore', record({ teams: [record({ goals: 3 })] })]);
  events.take(['onScore', record({ teams: [] })]);
  events.take(['onScore', record({ teams: 'toString' })]);
  t.deepEqual(
    seen().map(({ data }) => data),
    [txxx('3')],
  );
});

test('a trigger without a property takes all of the first object', (t) => {
  const { events, seen } = setUp(t, generator('onScore', ''));
  events.take(['onScore', null, record({ a: 1 })]);
  events.take(['onScore', 'text']);
  t.deepEqual(
    seen().map(({ data }) => data),
    [txxx('{"a":1}'), txxx('text')],
  );
});

test('a cue point of YouTube begins an ad break, another one ends it', (t) => {
  const { events, seen } = setUp(t);
  const cue = (properties: AmfObject) =>
    events.take(['onCuePoint', record({ type: 'com.youtube.cuepoint', ...properties })]);
  cue({ cue_point_start: true, break_duration_sec: 30.5, pre_roll_time_sec: 0 });
  cue({ cue_point_start: false });
  cue({ cue_point_start: true, break_duration_sec: Number.NaN });
  t.deepEqual(
    seen().flatMap(({ track, data }) => (track.codec === 'CUE' ? [JSON.parse(data.toString())] : [])),
    [{ cueType: 'out', duration: 30_500 }, { cueType: 'in' }],
  );
});

test('values that refer to themselves, or grow without end, cost one event', (t) => {
  const { events, seen, dropped } = setUp(t);
  const cycle = record({});
  cycle.self = cycle;
  events.take(['onTextData', cycle]);
  let wide: AmfValue = 'x'.repeat(100);
  for (let level = 0; level < 24; level++) wide = [wide, wide];
  events.take(['onTextData', wide]);
  events.take(['onTextData', record({ text: 'x'.repeat(70_000) })]);
  events.take(['onTextData', Buffer.of(1)]);
  events.take(['onTextData', record({ ['n'.repeat(70_000)]: 1 })]);
  // within the bytes, and no more than that: too many values, or too deep, where references are written out
  const list = Array.from({ length: 100 }, () => null);
  events.take(['onTextData', Array.from({ length: 60 }, () => list)]);
  let deep: AmfValue = 1;
  for (let level = 0; level < 20; level++) deep = [deep];
  events.take(['onTextData', deep]);
  t.is(seen().length, 0);
  t.is(dropped().length, 6);
});

test('more than a hundred events at once are dropped, and counted', (t) => {
  const { events, seen, dropped } = setUp(t);
  for (let i = 0; i < 1000; i++) events.take(['onTextData', i]);
  t.true(seen().length >= 100 && seen().length < 200);
  t.true(dropped().some((line) => line.includes('too many')));
});

test('anything may come as a data message', (t) => {
  const { events, seen } = setUp(t);
  for (const values of [[], [null], [{}], ['@setDataFrame'], ['onTextData'], ['onCuePoint', 1], ['constructor', 'x']])
    events.take(values as AmfValue[]);
  t.is(seen().length, 2);
});
