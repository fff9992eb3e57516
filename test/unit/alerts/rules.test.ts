import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { readRules, Rules } from '../../../src/alerts/rules.ts';
import { until } from '../../support/time/until.ts';

const read = (text: string, env = {}) => readRules(text, 'rules.xml', env);

test('a file of alert rules is read', (t) => {
  const text = `<?xml version="1.0" encoding="UTF-8"?><Rules>
    <Ingress><StreamStatus /><MinBitrate>2000000</MinBitrate><HasBFrames /></Ingress>
    <Egress><StreamStatus /><LLHLSReady /><HLSReady>false</HLSReady></Egress><InternalQueueCongestion />
  </Rules>`;
  t.like(read(text), {
    ingress: { streamStatus: true, minBitrate: 2_000_000, hasBFrames: true, longKeyFrameInterval: false },
    egress: { streamStatus: true, llhlsReady: true, hlsReady: false },
    internalQueueCongestion: true,
  });
  t.like(read('<Rules><Ingress><HasBFrame/></Ingress></Rules>'), { ingress: { hasBFrames: true } }, 'an older name');
  t.like(read('<Rules><Ingress><MinWidth>${env:W}</MinWidth></Ingress></Rules>', { W: '640' }), {
    ingress: { minWidth: 640 },
  });
});

test('a fault in an alert rule file is reported with its element', (t) => {
  for (const [text, message] of [
    ['<Rules>', /Unclosed tag|Rules/],
    ['<Alert/>', /the root element must be Rules, not Alert/],
    ['<Rules><Ingress><MinBitrate>much</MinBitrate></Ingress></Rules>', /Rules\/Ingress\/MinBitrate: .*not an integer/],
    ['<Rules><Ingres/></Rules>', /Ingres/],
  ] as const)
    t.throws(() => read(text), { message });
});

test('a file is followed, and one that is wrong leaves the rules as they were', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const alert = { url: 'http://127.0.0.1:1/', timeout: 3000, rulesFile: 'rules.xml', rules: undefined } as const;
  const rules = new Rules(alert, folder, {}, log);
  t.teardown(() => rules.close());
  const write = (content: string): void => writeFileSync(join(folder, 'rules.xml'), content);
  await until('the missing file is told of', () => lines.some((line) => line.includes('ENOENT')));
  write('<Rules><Ingress><MinWidth>640</MinWidth></Ingress></Rules>');
  await until('the rules are read', () => rules.current.ingress?.minWidth === 640);
  write('<Rules><Ingress><MinWidth>wide</MinWidth></Ingress></Rules>');
  await until('the fault is told of', () => lines.some((line) => line.includes('wide')));
  t.is(rules.current.ingress?.minWidth, 640);
  write('<Rules/>');
  await until('the new rules are read', () => rules.current.ingress === undefined);
});
