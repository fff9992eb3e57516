import type { Redis } from 'ioredis';

/** What Redis takes of a CPU while something is done, in microseconds. */
export async function cpuOf(admin: Redis, act: () => Promise<unknown>): Promise<number> {
  const used = async (): Promise<number> => {
    const times = (await admin.info('cpu')).matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm);
    return [...times].reduce((sum, [, seconds]) => sum + Number(seconds) * 1e6, 0);
  };
  const before = await used();
  await act();
  return (await used()) - before;
}
