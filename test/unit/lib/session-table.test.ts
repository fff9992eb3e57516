import test from 'ava';
import { SessionTable } from '../../../src/lib/session-table.ts';

const LIMITS = { sessions: 10, waiting: 3, purpose: 'publish' };

/** Sessions of addresses, in the order they come; answers the names of those that are closed. */
function come(table: SessionTable<{ close(reason: string): void }>, ...addresses: (string | undefined)[]): string[] {
  const closed: string[] = [];
  for (const [i, address] of addresses.entries()) {
    const session = {
      close: () => {
        table.delete(session);
        closed.push(`${address}${i}`);
      },
    };
    table.add(session, address);
  }
  return closed;
}

test('the oldest session of the address with the most gives way where too many wait', (t) => {
  t.deepEqual(come(new SessionTable(LIMITS), 'a', 'b', 'b', 'b', 'b', 'c'), ['b1', 'b2', 'b3']);
  t.deepEqual(come(new SessionTable(LIMITS), 'a', 'a', 'a', 'a'), ['a0']);
  t.deepEqual(come(new SessionTable(LIMITS), 'a', 'b', 'c', 'd'), ['a0'], 'among equals the one who is first');
  t.deepEqual(come(new SessionTable(LIMITS), undefined, undefined, undefined, undefined), ['undefined0']);
});

test('a session beyond the limit is objected to', (t) => {
  const table = new SessionTable<{ close(): void }>({ ...LIMITS, sessions: 2 });
  const first = { close: () => {} };
  table.add(first);
  t.is(table.objection, undefined);
  table.add({ close: () => {} });
  t.is(table.objection, '2 are open');
  table.delete(first);
  t.is(table.objection, undefined);
});
