import test from 'ava';
import { expandPath } from '../../../src/recording/macros.ts';

const VALUES = {
  transactionId: 'T'.repeat(16),
  id: 'i',
  vhost: 'v',
  app: 'a',
  stream: 's${Id}',
  source: 'in',
  sequence: 7,
  start: new Date(2026, 0, 2, 3, 4, 5),
  end: new Date(2026, 10, 12, 13, 14, 15),
};

test('macros stand for what they are called, and nothing is expanded twice', (t) => {
  const all = '${TransactionId}/${Id}/${VirtualHost}/${Application}/${Stream}/${SourceStream}/${Sequence}';
  t.is(expandPath(all, VALUES), 'TTTTTTTTTTTTTTTT/i/v/a/s${Id}/in/7');
  t.is(expandPath('${StartTime:YYYY-MM-DD_hh.mm.ss}', VALUES), '2026-01-02_03.04.05');
  t.is(expandPath('${EndTime}', VALUES), '20261112131415');
  t.is(expandPath('${Other}${', VALUES), '${Other}${');
});
