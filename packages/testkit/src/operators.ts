import { CallFailed, checkedResult, Person, post } from "./client.ts";
import type { TestServer } from "./server.ts";

/** Creates the account of an operator whom PARLEY_OPERATORS names: nobody can sign up under that name. */
export async function operatorAt(
  server: Pick<TestServer, "url" | "command">,
  username: string,
): Promise<Person> {
  const { password } = (await server.command("users", "create", username)) as { password: string };
  const { body } = await post(server.url, "signIn", { username, password });
  if (!body.ok) throw new CallFailed(body);
  const { access_token, account } = checkedResult("signIn", body.result);
  const operator = new Person(server.url, access_token, account);
  // The password of everybody else in tests.
  const new_password = "correct horse battery";
  await operator.call("changePassword", { current_password: password, new_password });
  return operator;
}
