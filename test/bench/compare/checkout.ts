import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The working tree. */
export const ROOT = join(import.meta.dirname, '../../..');

/** Under node_modules: what a set-up, a build or a start writes in place. */
const OWN = ['.kiln', '.cache', '.build.lock', 'mediasoup/worker/out'];

/** A commit in a folder of its own, ready to be started. */
export interface Checkout {
  readonly root: string;
  /** The commit's own name. */
  readonly hash: string;
  remove(): void;
}

/**
 * Checks a commit out beside the working tree, installs what its lock file names and builds it, as its own set-up does it.
 * @param path a folder that does not exist yet
 * @throws Error when there is no such commit, or its set-up fails
 */
export function checkOut(commit: string, path: string): Checkout {
  const hash = git('rev-parse', '--quiet', '--verify', '--end-of-options', `${commit}^{commit}`);
  if (hash === undefined) throw new Error(`git knows no commit ${commit}`);
  if (git('worktree', 'add', '--quiet', '--detach', path, hash) === undefined)
    throw new Error(`git cannot check out ${hash}`);
  const remove = () => {
    git('worktree', 'remove', '--force', path);
    rmSync(path, { recursive: true, force: true });
  };
  try {
    if (lockOf(path) === lockOf(ROOT)) shareModules(path);
    run(join(path, 'deploy/setup'), ['--quiet'], path);
    return { root: path, hash, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/**
 * The environment of a program that runs in a checkout: without what npm tells of the package whose script this process is, or
 * npm would work on that one.
 */
export function environmentIn(root: string, from: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  const npms = /^(npm_(package|lifecycle|command|config_local_prefix|execpath|node_execpath)|INIT_CWD$)/i;
  const kept = Object.entries(from).map(([name, value]) => [name, npms.test(name) ? undefined : value] as const);
  const path = (from.PATH ?? '').split(':').filter((folder) => !folder.endsWith('/node_modules/.bin'));
  return { ...Object.fromEntries(kept), PATH: [join(root, 'node_modules/.bin'), ...path].join(':') };
}

/** Gives a checkout the packages of the working tree: by hard links, but for what each writes itself. */
function shareModules(path: string): void {
  const source = realpathSync(join(ROOT, 'node_modules'));
  const target = join(path, 'node_modules');
  if (spawnSync('cp', ['-al', source, target], { stdio: 'ignore' }).status !== 0) {
    rmSync(target, { recursive: true, force: true });
    run('cp', ['-a', source, target], path);
    return;
  }
  for (const name of OWN.filter((one) => existsSync(join(source, one)))) {
    rmSync(join(target, name), { recursive: true, force: true });
    run('cp', ['-a', join(source, name), join(target, name)], path);
  }
}

function lockOf(root: string): string {
  return readFileSync(join(root, 'package-lock.json'), 'utf8');
}

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return status === 0 ? stdout.trim() : undefined;
}

function run(program: string, args: readonly string[], cwd: string): void {
  execFileSync(program, args, { cwd, env: environmentIn(cwd), stdio: ['ignore', 'ignore', 'inherit'] });
}
