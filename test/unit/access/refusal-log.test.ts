import { mock } from 'node:test';
import test from 'ava';
import { pino } from 'pino';
import { RefusalLog } from '../../../src/access/refusal-log.ts';

const MINUTE = 60_000;

test.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.afterEach.always(() => mock.timers.reset());

function open() {
  const lines: { msg: string; remote?: string; asked?: string; count?: number }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { refusals: new RefusalLog(log), lines };
}

const WHO = { direction: 'incoming', protocol: 'rtmp', address: '192.0.2.1', port: 40_000, asked: 'h/app/s' } as const;

test.serial('a rejection is logged in one line: address, protocol, request and reason', (t) => {
  const { refusals, lines } = open();
  refusals.add(WHO, 'Stream already exists');
  refusals.add({ ...WHO, direction: 'outgoing', protocol: 'llhls', address: '2001:db8::1' }, 'No');
  t.like(lines[0], {
    msg: 'RTMP publisher refused: Stream already exists',
    remote: '192.0.2.1:40000',
    asked: 'h/app/s',
  });
  t.like(lines[1], { msg: 'LL-HLS viewer refused: No', remote: '[2001:db8::1]:40000' });
});

test.serial('a reason is cut off that holds a name as long as a client likes', (t) => {
  const { refusals, lines } = open();
  refusals.add(WHO, `Could not find the application: [${'x'.repeat(60_000)}]`);
  t.true((lines[0]?.msg.length ?? Infinity) < 600);
});

test.serial(
  'a client that is rejected again and again is logged once, and then counted, once a minute, until it stops',
  (t) => {
    const { refusals, lines } = open();
    for (let port = 0; port < 1000; port++) refusals.add({ ...WHO, port }, 'No');
    t.is(lines.length, 1);
    mock.timers.tick(MINUTE);
    t.like(lines[1], { remote: '192.0.2.1', count: 999, msg: 'more clients from this address were refused' });
    refusals.add(WHO, 'No');
    t.is(lines.length, 2);
    mock.timers.tick(MINUTE);
    t.like(lines[2], { count: 1 });
    mock.timers.tick(MINUTE);
    mock.timers.tick(MINUTE);
    t.is(lines.length, 3);
    refusals.add(WHO, 'No');
    t.is(lines.length, 4, 'it comes anew');
  },
);

test.serial('a rejection for another reason or stream is another line, up to a few', (t) => {
  const { refusals, lines } = open();
  for (let i = 0; i < 50; i++) refusals.add({ ...WHO, asked: `h/app/${i}` }, 'No');
  t.is(lines.length, 5);
  refusals.close();
  t.like(lines[5], { count: 45 });
  t.is(lines.length, 6);
});

test.serial('many addresses do not flood the log, nor memory', (t) => {
  const { refusals, lines } = open();
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 5000; i++) refusals.add({ ...WHO, address: `10.0.${i >> 8}.${i & 255}` }, 'No');
    t.true(lines.length <= 200 + round * 401, `${lines.length} lines in round ${round}`);
    mock.timers.tick(MINUTE);
  }
  t.true(lines.some(({ msg }) => msg === 'clients from other addresses were refused'));
});
