import test from 'ava';
import { amfObject } from '../../../src/protocols/rtmp/amf-value.ts';
import { readEventFile } from '../../../src/events-from-files/event-file.ts';

const SEI = `<Event><Enable>true</Enable><SourceStreamName>live*</SourceStreamName><Interval>3000</Interval>
  <EventFormat>sei</EventFormat><EventType>video</EventType>
  <Values><SeiType>UserDataUnregistered</SeiType><Data>at \${EpochTime}</Data><KeyframeOnly>true</KeyframeOnly></Values>
</Event>`;
const AMF = `<Event><Enable>true</Enable><SourceStreamName>*</SourceStreamName><Interval>1000</Interval>
  <EventFormat>AMF</EventFormat>
  <Values><AmfType>onTextData</AmfType><Data><text>hello</text><size>-4.5</size><on>true</on></Data></Values></Event>`;

const read = (events: string) => readEventFile(`<EventInfo>${events}</EventInfo>`, 'events.xml');

test('SEI and AMF, as they are asked for', (t) => {
  const [sei, amf, ...others] = read(`${SEI}${AMF}${SEI.replace('<Enable>true', '<Enable>false')}`);
  t.is(others.length, 0);
  t.deepEqual(sei?.event, { format: 'sei', data: 'at ${EpochTime}', keyFrameOnly: true });
  t.is(sei?.intervalMs, 3000);
  t.deepEqual([sei?.streams.test('live-1'), sei?.streams.test('other')], [true, false]);
  const properties = Object.assign(amfObject(), { text: 'hello', size: -4.5, on: true });
  t.deepEqual(amf?.event, { format: 'amf', name: 'onTextData', properties });
});

const WRONG: readonly (readonly [string, string, RegExp])[] = [
  ['an interval of nothing', SEI.replace('3000', '0'), /line \d+: Interval is not a number of milliseconds/],
  ['no stream', SEI.replace(/<SourceStreamName>.*?<\/SourceStreamName>/, ''), /Event has no SourceStreamName/],
  ['another format', SEI.replace('>sei<', '>id3<'), /EventFormat is neither sei nor amf/],
  ['SEI beside audio', SEI.replace('>video<', '>audio<'), /EventType is not video/],
  ['another SEI', SEI.replace('>UserDataUnregistered<', '>PictureTiming<'), /SeiType is not UserDataUnregistered/],
  ['another message', AMF.replace('>onTextData<', '>onMetaData<'), /AmfType is neither/],
  ['no data', AMF.replace(/<Data>.*<\/Data>/, ''), /Values has no Data/],
  ['an unknown element', SEI.replace(/Interval/g, 'Intervall'), /Intervall is not known/],
  ['too much data', SEI.replace('at ', 'x'.repeat(20_000)), /Data is longer than/],
  ['neither on nor off', SEI.replace('<Enable>true', '<Enable>yes'), /Enable is neither true nor false/],
  ['too many', SEI.repeat(101), /more than 100/],
  ['not XML', '<Event>', /events\.xml/],
];

for (const [what, events, message] of WRONG)
  test(`a file of events is rejected: ${what}`, (t) => {
    t.throws(() => read(events), { message });
  });

test('a file of events with another root is rejected', (t) => {
  t.throws(() => readEventFile('<Events/>', 'events.xml'), { message: /EventInfo/ });
});
