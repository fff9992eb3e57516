import test from 'ava';
import { pino } from 'pino';
import { masked, withoutAddresses } from '../../../src/core/privacy.ts';
import { createHttpPort } from '../../../src/web/http-port.ts';

test('addresses are masked whole, and ports with them', (t) => {
  for (const address of ['192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1']) t.is(masked(address), 'xxx.xxx.xxx.xxx');
  for (const remote of ['192.0.2.1:5000', '[2001:db8::1]:5000']) t.is(masked(remote), 'xxx.xxx.xxx.xxx:xxx');
});

test('the log has no address, whatever line or child of it is given one', async (t) => {
  const lines: string[] = [];
  const log = withoutAddresses(pino({}, { write: (line: string) => void lines.push(line) }));
  log.warn({ remote: '192.0.2.1:5000' }, 'one');
  log.child({ remote: '192.0.2.2' }).child({ module: 'rtmp' }).info('two');
  log.child({ module: 'rtmp' }).info({ remote: undefined, count: 3 }, 'three');
  const { app } = createHttpPort({ log });
  app.get('/', () => {
    throw new Error('on purpose');
  });
  const { statusCode } = await app.inject({ url: '/', remoteAddress: '192.0.2.4' });
  t.is(statusCode, 500);
  await app.close();
  t.is(lines.length, 4);
  t.regex(lines[0] ?? '', /"remote":"xxx\.xxx\.xxx\.xxx:xxx"/);
  t.regex(lines[1] ?? '', /"remote":"xxx\.xxx\.xxx\.xxx"/);
  t.regex(lines[3] ?? '', /on purpose/);
  t.notRegex(lines.join(''), /192\.0\.2/);
});
