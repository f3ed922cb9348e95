"""What a page must not do: log an error, break the content policy, open a dialog, run what is not ours."""

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page

TELL_OF_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy broken: ${event.violatedDirective} ${event.blockedURI}`);
});
"""


# htmx logs a request that a newer one or the next page cancelled; what fails otherwise is told on the page itself.
CANCELLED = ("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")
OFFLINE = "net::ERR_INTERNET_DISCONNECTED"  # only a test that takes the network away sees it


class Watch:
    def __init__(self):
        self.faults: list[str] = []
        self.expected_statuses: set[int] = set()  # answers that a test asks for; Chromium logs them as errors
        self.expected_texts: tuple[str, ...] = ()  # what a test that takes the server away makes Chromium say

    def over(self, context: BrowserContext) -> None:
        context.add_init_script(TELL_OF_VIOLATIONS)
        context.on("page", self._over_page)

    def _over_page(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", self._dialog)

    def _console(self, message: ConsoleMessage) -> None:
        said = ("a status of {} ", "Response Status Error Code {} ")  # the browser's words, and htmx's
        expected = any(words.format(s) in message.text for s in self.expected_statuses for words in said)
        expected = expected or message.text.startswith(CANCELLED) or OFFLINE in message.text
        expected = expected or any(words in message.text for words in self.expected_texts)
        if message.type in ("error", "warning") and not expected:
            self.faults.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":  # the browser's own question about unsaved edits
            self.faults.append(f"dialog: {dialog.message}")
        dialog.accept()
