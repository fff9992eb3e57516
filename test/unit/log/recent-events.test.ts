import test from 'ava';
import { jsonLogger } from '../../../src/log/log.ts';
import { RecentEvents } from '../../../src/log/recent-events.ts';

test('only main events are kept, the newest 500, and no endless lines', (t) => {
  const events = new RecentEvents();
  const log = jsonLogger('info', { write: (line) => events.add(line) });
  log.info('nothing in particular');
  log.debug({ event: 'viewer.joined' }, 'below the level');
  log.warn({ event: 'client.refused', asked: 'x'.repeat(10_000) }, 'too long');
  t.deepEqual(events.newest(10), []);
  for (let n = 0; n < 600; n++) log.info({ event: 'stream.published', stream: `${n}` }, 'published');
  t.is(events.newest(1000).length, 500);
  t.deepEqual(
    events.newest(2).map(({ stream }) => stream),
    ['598', '599'],
  );
  t.like(events.newest(1)[0], { level: 'info', event: 'stream.published', msg: 'published' });
});
