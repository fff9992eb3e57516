import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import type { Application } from '../../../src/core/application.ts';
import { Registry } from '../../../src/core/registry.ts';
import { EventGenerator } from '../../../src/events-from-files/index.ts';
import { generate } from '../../../src/events-from-files/generate.ts';
import { decodeAmf0 } from '../../../src/protocols/rtmp/amf0.ts';
import { amfObject } from '../../../src/protocols/rtmp/amf-value.ts';
import { recordInput, recordLog } from '../../support/media/input-recorder.ts';
import { videoPackets, videoTrack, withNal } from '../../support/media/packets.ts';
import { until } from '../../support/time/until.ts';

const VIDEO = videoTrack();
const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;

const events = (text: string) => `<EventInfo><Event><Enable>true</Enable><SourceStreamName>li*</SourceStreamName>
  <Interval>100</Interval><EventFormat>amf</EventFormat>
  <Values><AmfType>onTextData</AmfType><Data><text>${text}</text></Data></Values></Event></EventInfo>`;

test('the events of a file go on with its last good state when it changes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-events-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'events.xml');
  await writeFile(file, events('one'));
  const registry = new Registry();
  const { log, lines } = recordLog();
  const generator = new EventGenerator({ registry, folder, log });
  t.teardown(() => generator.close());
  const { input, packets } = recordInput(t, SOURCE);
  input.setTracks([VIDEO]);
  const config = { eventGenerator: { enable: true, path: 'events.xml' } } as ApplicationConfig;
  registry.emit('input', input, { config } as Application);
  const [frame] = videoPackets(VIDEO, { to: 1 });
  if (frame !== undefined) input.write(frame);
  const texts = () =>
    packets.flatMap(({ track, data }) => (track.codec === 'AMF' ? [JSON.stringify(decodeAmf0(data)[1])] : []));
  await until('an event comes', () => texts().includes('{"text":"one"}'));
  await writeFile(file, '<EventInfo><Event>');
  await until('the log tells of the file', () => lines.some((line) => line.includes('stays in effect')));
  const before = texts().length;
  await until('the events go on', () => texts().length > before);
  await writeFile(file, events('two'));
  await until('the new event comes', () => texts().at(-1) === '{"text":"two"}');
  input.close('over');
  t.is(new Set(texts()).size, 2);
});

test('SEI goes into the video of every output stream', (t) => {
  const { input } = recordInput(t, SOURCE);
  input.setTracks([VIDEO]);
  const output = input.addOutput('out');
  output.setTracks([VIDEO]);
  const seen: Buffer[] = [];
  output.read({ packet: ({ data }) => void seen.push(data) });
  const [first, second] = videoPackets(VIDEO, { to: 1 }).map(withNal);
  const sei = { format: 'sei', data: 'now ${EpochTime}', keyFrameOnly: false } as const;
  generate(sei, input, 5);
  for (const frame of [first, second]) {
    if (frame === undefined) continue;
    input.write(frame);
    generate(sei, input, 0x1234);
    output.write(frame);
  }
  const [, told] = seen;
  t.true(seen[0]?.includes(Buffer.from('464d4c475241494e434f4c4f55524201', 'hex')));
  t.true(told?.includes(Buffer.from('now 4660')));
});

test('an event without a stream that plays goes nowhere', (t) => {
  const { input, packets } = recordInput(t, SOURCE);
  generate({ format: 'amf', name: 'onTextData', properties: amfObject() }, input);
  t.is(packets.length, 0);
});
