import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../support/network/ports.ts';
import { until } from '../support/time/until.ts';

/** Starts nginx with one worker process, which serves the files of `root`. */
export async function startNginx(folder: string) {
  const [port] = freePorts(1);
  const root = join(folder, 'www');
  await mkdir(root, { recursive: true });
  const config = join(folder, 'nginx.conf');
  await writeFile(
    config,
    `
user root;
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 256; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=100;
  server { listen 127.0.0.1:${port}; root ${root}; }
}
`,
  );
  const args = ['-c', config, '-p', folder, '-e', 'stderr'];
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const url = `http://127.0.0.1:${port}`;
  await until('nginx', async () => (await fetch(url).catch(() => undefined)) !== undefined);
  return {
    root,
    url,
    pid: child.pid as number,
    stop: async () => {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
