import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { findProgram } from '../../../deploy/cluster/program.ts';
import { Program } from '../media/ffmpeg.ts';
import { freePorts } from './ports.ts';
import { until } from '../time/until.ts';

/**
 * nginx that has HTTP servers below paths of its own, such as `media` for `http://127.0.0.1:1234`, and nothing else. It is gone
 * after the test.
 * @returns its URL, without a slash at the end
 */
export async function startSubPaths(
  t: Pick<ExecutionContext, 'teardown'>,
  servers: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-test-'));
  const [port] = freePorts(1) as [number];
  const config = join(folder, 'nginx.conf');
  const locations = Object.entries(servers).map(
    ([path, url]) => `location /${path}/ { proxy_pass ${url}/; proxy_set_header Host $http_host; }`,
  );
  // one process: its workers would outlive a master that is killed
  await writeFile(
    config,
    `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 256; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((one) => `${one}_temp_path ${folder}/${one};`).join(' ')}
  proxy_http_version 1.1;
  proxy_buffering off;
  server { listen 127.0.0.1:${port}; ${locations.join(' ')} location / { return 405; } }
}
`,
  );
  const nginx = new Program(findProgram('nginx'), ['-c', config, '-p', folder, '-e', 'stderr'], process.env);
  t.teardown(async () => {
    await nginx.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  await until('nginx answers', async () => {
    if (!nginx.running) throw new Error(nginx.stderr);
    return (await fetch(url).catch(() => undefined))?.status === 405;
  });
  return url;
}
