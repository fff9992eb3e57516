import test from 'ava';
import { environmentIn } from '../../bench/compare/checkout.ts';

test('programs of another checkout know nothing of the package whose script starts them', (t) => {
  const env = environmentIn('/tmp/other', {
    PATH: '/work/kiln/node_modules/.bin:/work/node_modules/.bin:/usr/bin:/bin',
    HOME: '/home/somebody',
    INIT_CWD: '/work/kiln',
    npm_config_local_prefix: '/work/kiln',
    npm_config_registry: 'https://registry.example.com/',
    npm_package_json: '/work/kiln/package.json',
    npm_lifecycle_event: 'bench',
    npm_command: 'run-script',
  });
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
  t.deepEqual(given, {
    PATH: '/tmp/other/node_modules/.bin:/usr/bin:/bin',
    HOME: '/home/somebody',
    npm_config_registry: 'https://registry.example.com/',
  });
});
