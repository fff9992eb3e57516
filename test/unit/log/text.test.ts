import test from 'ava';
import { createLogger, jsonLogger, logSettings } from '../../../src/log/log.ts';
import { textLine } from '../../../src/log/text.ts';

function logged(level = 'trace') {
  const lines: string[] = [];
  const log = jsonLogger(level, { write: (line: string) => void lines.push(line) });
  return { log, lines, text: () => lines.map((line) => textLine(line, false)) };
}

test('JSON has names of levels, ISO time and the id of the event', (t) => {
  const { log, lines } = logged();
  log.child({ module: 'rtmp' }).info({ event: 'stream.published', stream: 'app/a' }, 'published');
  const { time, ...line } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  t.regex(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.deepEqual(line, {
    level: 'info',
    module: 'rtmp',
    event: 'stream.published',
    stream: 'app/a',
    msg: 'published',
  });
});

test('a text log has one line an event: time, level, module, subject, message and address', (t) => {
  const { log, text } = logged();
  const fields = { stream: 'app/mystream', tracks: '1280x720 H264 AAC', remote: '203.0.113.9' };
  log.info({ event: 'stream.published', module: 'rtmp', ...fields }, 'published');
  log.warn({ app: 'app', stream: 's', host: 'h', reason: 'too slow', count: 3, list: [1] }, 'closed');
  log.error({ err: new TypeError('no') }, 'failed');
  const [first = '', second = '', third = ''] = text();
  t.regex(first, /^\d\d:\d\d:\d\d INF rtmp app\/mystream published 1280x720 H264 AAC from 203\.0\.113\.9\n$/);
  t.regex(second, /^\S+ WRN app\/s closed reason="too slow" count=3 list=\[1\]\n$/);
  t.regex(third, /^\S+ ERR failed \(TypeError: no, at .*text\.test\.ts:\d+:\d+\)\n$/);
});

test('times in text logs are local', (t) => {
  const at = new Date(2026, 0, 2, 3, 4, 5);
  const line = JSON.stringify({ level: 'info', time: at.toISOString(), msg: 'x' });
  t.is(textLine(line, false), '03:04:05 INF x\n');
  t.is(textLine(line, true), '03:04:05 \u001b[36mINF\u001b[0m x\n');
});

test('text from clients cannot end a line of the log, move the cursor or turn the text around', (t) => {
  const { log, lines, text } = logged();
  const evil = 'a\nb\r\u0000\u001b[2J\u009b1m\u2028\u202e\u007f';
  log.info({ stream: evil, remote: evil, [evil]: evil, err: new Error(evil) }, evil);
  for (const line of [...text(), ...lines]) {
    t.is(line.split('\n').length, 2);
    t.notRegex(line.slice(0, -1), /[\u0000-\u001f]/);
  }
  t.notRegex(text()[0]?.slice(0, -1) ?? '', /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

test('the environment chooses level and format', (t) => {
  t.deepEqual(logSettings({}, true), { level: 'info', format: 'text' });
  t.deepEqual(logSettings({}, false), { level: 'info', format: 'json' });
  t.deepEqual(logSettings({ KILN_LOG: 'json', KILN_LOG_LEVEL: 'debug' }, true), { level: 'debug', format: 'json' });
  t.throws(() => logSettings({ KILN_LOG: 'xml' }, true), { message: 'KILN_LOG: "xml" is not one of text, json' });
  t.like(logSettings({ KILN_LOG: 'json' }, false, 'text'), { format: 'text' }, 'the option comes before the variable');
  t.throws(() => logSettings({}, true, 'xml'), { message: '--log-format: "xml" is not one of text, json' });
  t.throws(() => logSettings({ KILN_LOG_LEVEL: 'loud' }, true), {
    message: /^KILN_LOG_LEVEL: "loud" is not one of trace/,
  });
  t.notThrows(() => createLogger('silent').info('x'));
});
