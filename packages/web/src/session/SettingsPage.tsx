import { useClient, useProfile } from "@parley/client/react";
import { type RefObject, useRef, useState } from "react";
import { SaveRow } from "../agents/SaveRow.tsx";
import { PictureField } from "../files/PictureField.tsx";
import { useAction } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { notificationsOn, setNotifications } from "../lib/notifications.ts";
import { usePolicy } from "../lib/policy.ts";
import { namesOf, type SettingsPageName, settingsPages, settingsPath } from "../lib/router.ts";
import { setTheme, useTheme } from "../lib/theme.ts";
import { Page, Section } from "../shell/Page.tsx";
import { ToolServersSection } from "../tools/ToolServersSection.tsx";
import { AccountLabel } from "../ui/AccountLabel.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { Choice } from "../ui/Choice.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { PageTabs } from "../ui/PageTabs.tsx";
import { AddedBy } from "./AddedBy.tsx";
import { BlockedPeople } from "./BlockedPeople.tsx";
import { signOut } from "./client.ts";
import { useHasPassword } from "./has-password.ts";
import { OwnData } from "./OwnData.tsx";
import { PasswordForm } from "./PasswordForm.tsx";
import { SecondFactor } from "./SecondFactor.tsx";
import { Sessions } from "./Sessions.tsx";

const themes = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
] as const;

const onOff = [
  { value: "off", label: "Off" },
  { value: "on", label: "When I am away" },
] as const;

/** The settings, on pages by what they are about. */
export default function SettingsPage({ page }: { page: SettingsPageName }) {
  const policy = usePolicy();
  const typedName = useRef<string | null>(null);
  const tabs = namesOf(settingsPages).filter((name) => name !== "tool-servers" || policy.agents);
  return (
    <Page
      title="Settings"
      intro={`You, your notifications${policy.agents ? ", your tool servers" : ""}, and where you are signed in.`}
    >
      <PageTabs
        label="Settings"
        tabs={tabs.map((name) => [settingsPath(name), settingsPages[name]])}
        open={settingsPath(page)}
      />
      {page === "you" && <You typedName={typedName} />}
      {page === "security" && <Security />}
      {page === "notifications" && <Notifications />}
      {page === "tool-servers" && policy.agents && (
        <Section title="Tool servers">
          <ToolServersSection />
        </Section>
      )}
      {page === "data" && <Data />}
    </Page>
  );
}

/** `typedName` is what stands in the field for the name, also after another page was open. */
interface NameProps {
  typedName: RefObject<string | null>;
}

function You({ typedName }: NameProps) {
  const policy = usePolicy();
  const theme = useTheme();
  return (
    <>
      <Section title="You">
        {policy.rename ? (
          <div className="flex flex-col gap-5">
            <OwnPicture />
            <NameForm typedName={typedName} />
          </div>
        ) : (
          <OwnName />
        )}
      </Section>
      <Section title="Appearance">
        <Choice label="Theme" value={theme} options={themes} onChange={setTheme} />
      </Section>
      <Section title="Who may add me">
        <AddedBy />
      </Section>
      <Section title="Blocked people">
        <BlockedPeople />
      </Section>
    </>
  );
}

function Security() {
  const client = useClient();
  return (
    <>
      {useHasPassword() && (
        <Section title="Password">
          <PasswordForm />
        </Section>
      )}
      <Section title="Second factor">
        <SecondFactor />
      </Section>
      <Section title="Sessions">
        <Sessions />
      </Section>
      <Button look="danger" icon="leave" className="self-start" onClick={() => signOut(client)}>
        Sign out
      </Button>
    </>
  );
}

function Notifications() {
  const [notices, setNotices] = useState<"on" | "off">(() => (notificationsOn() ? "on" : "off"));
  const switchNotices = async (value: "on" | "off") =>
    setNotices((await setNotifications(value === "on")) ? "on" : "off");
  return (
    <Section title="Notifications">
      <Choice label="Notifications" value={notices} options={onOff} onChange={switchNotices} />
    </Section>
  );
}

function Data() {
  const hasPassword = useHasPassword();
  return (
    <Section title="Your data">
      <OwnData hasPassword={hasPassword} />
    </Section>
  );
}

function OwnName() {
  const me = useSelf();
  return (
    <div className="flex items-center gap-3">
      <AccountLabel account={me} isSelf />
    </div>
  );
}

function OwnPicture() {
  const me = useSelf();
  const client = useClient();
  const url = useProfile(me.username)?.preview_url ?? null;
  return (
    <PictureField
      label="Your picture"
      hasPicture={url !== null}
      url={url}
      onChange={(file_id) => client.setAvatar({ file_id })}
    >
      <Avatar account={me} size={64} />
    </PictureField>
  );
}

function NameForm({ typedName }: NameProps) {
  const me = useSelf();
  const client = useClient();
  const action = useAction();
  return (
    <Form
      error={action.error}
      className="flex flex-col gap-4"
      onSubmit={({ text }) =>
        void action.run(() => client.updateMe({ display_name: text("display_name") }))
      }
    >
      <TextField
        label="Your name"
        name="display_name"
        defaultValue={typedName.current ?? me.display_name}
        onChange={({ target }) => {
          typedName.current = target.value;
        }}
        required
        maxLength={64}
        autoComplete="name"
        hint={`Your username is @${me.username}.`}
      />
      <SaveRow {...action} />
    </Form>
  );
}
