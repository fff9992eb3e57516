import test from 'ava';
import { faults, logged } from '../../lint/log-messages.ts';

const texts = (source: string) => logged(source).flatMap((line) => line.texts);

test('messages of level warn or above are found in every form of logging', (t) => {
  const source = `
    log.info('quiet');
    log.debug({ a }, 'quieter');
    log[isFrequent ? 'debug' : 'info']('quiet, too');
    log.warn('a');
    this.#log.error({ file, reason: of(error, ', ') }, 'b');
    log?.fatal({ err }, 'c');
    this.#options.log[isKnown ? 'debug' : 'warn'](fields, 'd');
    log[level === 'info' && hasPublished ? 'debug' : level]({ received }, 'e');
    this.#log(id).error(
      { id },
      'f',
    );
    guard.error('an error that is made');
  `;
  t.deepEqual(texts(source), ['a', 'b', 'c', 'd', 'e', 'f']);
});

test('values become one sign, and what is joined is one text', (t) => {
  t.deepEqual(texts("log.warn({ a }, `${a} of ${b.map((c) => `${c}, {`)} are ` + 'not there')"), [
    '… of … are not there',
  ]);
  t.deepEqual(texts(`log.warn("another node's")`), ["another node's"]);
  t.deepEqual(texts('log.warn(`\\${PublicIP} is ${address}`)'), ['${PublicIP} is …']);
  t.deepEqual(texts("log.warn(a ? 'one' : `the ${other}`)"), ['one', 'the …']);
});

test('main events and faults are known', (t) => {
  const [line, fault] = logged("log.warn({ event: 'node.full' }, 'full'); this.#faults.count('lost');");
  t.like(line, { event: 'node.full', isFault: false });
  t.like(fault, { texts: ['lost'], isFault: true });
});

const SOURCE = "log.warn('one'); log.warn({ event: 'two.events' }, `two ${a}`); faults.count(reason)";
const found = (source: string, page: string, runbook = '') => faults(new Map([['src/a.ts', source]]), page, runbook);

test('explained log messages pass', (t) => {
  t.deepEqual(found(SOURCE, '| `one` | a | b |\n| `two …` (`two.events`) | a | b |', '`two.events`'), []);
});

test('a log message that is missing, explained twice or never logged is a fault', (t) => {
  t.deepEqual(found(SOURCE, '| `one` | a | b |\n| `one` | a | b |\n| `three` | a | b |'), [
    'src/a.ts: docs/log-messages.md does not explain `two …`',
    'src/a.ts: docs/troubleshoot.md does not name `two.events`',
    'docs/log-messages.md has `one` twice',
    'docs/log-messages.md: nothing logs `three`',
  ]);
});

test('a line whose text is made elsewhere has to be known', (t) => {
  t.deepEqual(found('log.warn({ a }, text)', ''), ['src/a.ts: log-messages.ts does not know what text text can have']);
});
